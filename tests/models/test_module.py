from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from learned_runs import datamodule, module, trainer
from learned_worlds import EvenAnalyzer, ring_questions, ring_triples
from pytorch_lightning.callbacks import ModelCheckpoint
from torch import Tensor

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.states import StateSettings
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.guided_walk import WalkSettings, extended_likelihood
from vispath_lit.models.module import TrainingSettings, VisPathModule, warm_cosine

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


def test_training_learns_a_language_that_the_fixed_scorers_do_not_know(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    data = QuestionDataModule(
        graph,
        supervise(graph, ring_questions(300, seed=0, relations=3, deepest=2)),
        supervise(graph, ring_questions(60, seed=1, relations=3, deepest=2)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        batch_size=10,
    )
    learner = module(graph, settings=TrainingSettings(lr=4e-3))
    run = trainer(tmp_path, max_epochs=3)
    before = run.validate(learner, data, verbose=False)[0]
    run.fit(learner, data)
    after = run.validate(learner, data, verbose=False)[0]
    for hop in (1, 2):
        assert before[f"val/edge_hit/{hop}"] < 0.4
        assert after[f"val/edge_hit/{hop}"] > 0.85
        assert after[f"val/chain_hit/{hop}"] > before[f"val/chain_hit/{hop}"] + 0.4
        assert after[f"val/gold_pruned/{hop}"] < 0.1
    assert after["val/depth_hit"] > 0.95
    assert after["val/stop_hit"] > 0.9
    assert after["val/loss"] < before["val/loss"]


class RandomStates(pl.Callback):
    """Stores the random states, so that a resumed run draws what the unbroken one does."""

    def state_dict(self) -> dict[str, Any]:
        return {"torch": torch.get_rng_state()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        torch.set_rng_state(state_dict["torch"])


def test_a_run_taken_up_in_the_middle_of_an_epoch_ends_at_the_same_bits(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    def weights(learner: VisPathModule) -> dict[str, Tensor]:
        return {name: weight.clone() for name, weight in learner.parts.state_dict().items()}

    def keeper() -> ModelCheckpoint:
        return ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=3, save_top_k=-1)

    values: dict[str, Any] = {"max_epochs": 2, "enable_checkpointing": True, "limit_val_batches": 0}
    unbroken = module(graph)
    trainer(tmp_path, callbacks=[keeper(), RandomStates()], **values).fit(unbroken, datamodule(graph))
    for step in (3, 6):  # epochs have 4 steps
        pl.seed_everything(99)
        resumed = module(graph)
        torch.manual_seed(random.Random(step).randrange(1000))
        run = trainer(tmp_path / "again", callbacks=[keeper(), RandomStates()], **values)
        run.fit(resumed, datamodule(graph), ckpt_path=str(tmp_path / f"step={step}.ckpt"))
        assert run.global_step == 8
        for name, weight in weights(unbroken).items():
            assert torch.equal(weight, weights(resumed)[name]), (step, name)


def test_a_checkpoint_holds_trained_weights_alone_and_loads_weights_only(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    learner = module(graph)
    frozen = learner.parts.get_parameter("intent.tokens.0.weight")
    frozen.requires_grad_(False)
    run = trainer(tmp_path, max_steps=1, limit_val_batches=0)
    run.fit(learner, datamodule(graph))
    run.save_checkpoint(tmp_path / "one.ckpt")
    content = torch.load(tmp_path / "one.ckpt", weights_only=True)
    names = {f"parts.{name}" for name, _ in learner.parts.named_parameters()}
    assert set(content["state_dict"]) == names - {"parts.intent.tokens.0.weight"}
    assert all(isinstance(value, int | float) for value in content["hyper_parameters"].values())
    del content["state_dict"]["parts.intent.out.weight"]
    torch.save(content, tmp_path / "cut.ckpt")
    with pytest.raises(CheckpointError, match=r"intent\.out\.weight"):
        trainer(tmp_path).fit(
            learner, datamodule(graph), ckpt_path=str(tmp_path / "cut.ckpt"), weights_only=True
        )


def test_what_the_search_measures_is_logged_for_the_choice_of_the_checkpoint(
    graph: KnowledgeGraph, tmp_path: Path
) -> None:
    seen: list[bool] = []
    learner = module(graph)

    def validate() -> dict[str, float]:
        seen.append(learner.parts.training)
        return {"path_hit@3": 0.25}

    learner.validate = validate
    run = trainer(tmp_path, limit_train_batches=1)
    run.fit(learner, datamodule(graph))
    assert run.callback_metrics["val/path_hit@3"] == 0.25
    assert seen == [False]


def test_likelihood_of_a_path_is_the_sum_of_its_steps(graph: KnowledgeGraph) -> None:
    """Joint over all edges of a state, as the search counts it."""
    builder = datamodule(graph).builders["train"]
    batch = builder.batch([0, 1, 2, 3], [0])
    states = batch.first()
    scores = torch.randn(len(states.frontier))
    first = extended_likelihood(states, scores, torch.zeros(4))
    following = batch.next(states, batch.siblings(states))
    assert following is not None
    more = torch.randn(len(following.frontier))
    second = extended_likelihood(following, more, first[following.parent_edge])
    for edge in range(0, len(following.frontier), 7):
        path = int(following.frontier.edge_path[edge])
        mates = more[following.edge_state == following.edge_state[edge]]
        step = math.log(math.exp(more[edge]) / mates.exp().sum().item())
        parent = int(following.parent_edge[path])
        before = scores[states.edge_state == states.edge_state[parent]]
        start = math.log(math.exp(scores[parent]) / before.exp().sum().item())
        assert second[edge].item() == pytest.approx(start + step, abs=1e-5)


def test_the_learning_rate_rises_then_falls() -> None:
    factor = warm_cosine(100, 0.1)
    values = np.array([factor(step) for step in range(101)])
    assert values[9] == pytest.approx(1.0)
    assert (np.diff(values[:10]) > 0).all()
    assert (np.diff(values[10:]) < 0).all()
    assert values[100] == pytest.approx(0.01)


def test_the_share_of_own_beams_grows_to_its_value_half_way(graph: KnowledgeGraph, tmp_path: Path) -> None:
    shares: list[float] = []
    learner = module(graph, settings=TrainingSettings(beam_share=0.6))
    run = learner.walk.run

    def spy(batch: Any, beam_share: float) -> Any:
        shares.append(beam_share)
        return run(batch, beam_share)

    learner.walk.run = spy  # type: ignore[method-assign]
    trainer(tmp_path, max_epochs=1, limit_val_batches=0).fit(learner, datamodule(graph))
    assert shares == pytest.approx([0.0, 0.3, 0.6, 0.6])


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"training\.warmup is 2"):
        TrainingSettings(warmup=2)
    with pytest.raises(ConfigError, match=r"training\.lr is 0"):
        TrainingSettings(lr=0)
    with pytest.raises(ConfigError, match="chain_edges"):
        WalkSettings(chain_edges=0)
