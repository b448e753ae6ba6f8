"""Two processes that train together, on a world that can be learned in seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from learned_runs import datamodule, module, trainer
from learned_worlds import EvenAnalyzer, ring_questions, ring_triples
from process_pairs import pair
from pytorch_lightning.strategies import DDPStrategy

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.states import StateSettings
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import load_config
from vispath_lit.launch.divided import Divided
from vispath_lit.launch.fit import _trainer
from vispath_lit.launch.joined import _environment
from vispath_lit.models.module import TrainingSettings, VisPathModule
from vispath_lit.processes import count, gathered, in_turn, is_first, rank, shared, together

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
SETTINGS = TrainingSettings(lr=4e-3)
EPOCHS = 3


class Whole(pl.Callback):
    """Keeps the weights at the end, put together again."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        assert isinstance(pl_module, VisPathModule)
        with pl_module._whole():
            named = pl_module.parts.named_parameters()
            torch.save({name: weight.detach().clone() for name, weight in named}, self.file)


def ddp() -> DDPStrategy:
    return DDPStrategy(find_unused_parameters=True, broadcast_buffers=False)


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


def learn(graph: KnowledgeGraph, folder: Path, seed: int, devices: int, batch_size: int) -> dict[str, float]:
    values: dict[str, Any] = {"devices": 2, "strategy": ddp()} if devices == 2 else {}
    learner = module(graph, seed=seed, settings=SETTINGS)
    run = trainer(folder, max_epochs=EPOCHS, **values)
    data = QuestionDataModule(
        graph,
        supervise(graph, ring_questions(240, seed=0, relations=3, deepest=2)),
        supervise(graph, ring_questions(60, seed=1, relations=3, deepest=2)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        batch_size=batch_size,
        seed=seed,
    )
    run.fit(learner, data)
    return {name: float(value) for name, value in run.callback_metrics.items() if name.startswith("val/")}


def test_objects_go_round_in_order() -> None:
    def work(mine: int) -> None:
        assert (rank(), count(), is_first()) == (mine, 2, mine == 0)
        assert shared(f"of {mine}") == "of 0"
        assert gathered(mine * 10) == [0, 10]
        assert list(together([3, 1, 2], lambda n: (n, rank()), "counting")) == [(3, 0), (1, 1), (2, 0)]
        assert list(together([], lambda n: n, "nothing")) == []
        with in_turn():
            pass

    assert list(together([3, 1], lambda n: n * 2, "alone")) == [6, 2]
    assert (rank(), count(), shared(5), gathered(5)) == (0, 1, 5, [5])
    pair(work)


def test_two_processes_validate_as_one_does(graph: KnowledgeGraph, tmp_path: Path) -> None:
    """60 questions in batches of 7: nine batches, so that the second process has one less."""

    def validate(devices: int) -> dict[str, float]:
        values: dict[str, Any] = {"devices": 2, "strategy": ddp()} if devices == 2 else {}
        data = datamodule(graph, batch_size=7)
        return dict(trainer(tmp_path, **values).validate(module(graph), data, verbose=False)[0])

    def work(mine: int) -> None:
        (tmp_path / f"{mine}.json").write_text(json.dumps(validate(2)))

    pair(work)
    alone = validate(1)
    assert json.loads((tmp_path / "0.json").read_text()) == alone
    assert json.loads((tmp_path / "1.json").read_text()) == alone
    assert alone["val/loss"] > 0


def test_two_processes_learn_as_much_as_one(graph: KnowledgeGraph, tmp_path: Path) -> None:
    """Half the batch each, so that a step sees as many questions; means of three seeds."""

    def work(mine: int) -> None:
        found = [learn(graph, tmp_path, seed, 2, 5) for seed in range(3)]
        (tmp_path / f"{mine}.json").write_text(json.dumps(found))

    pair(work)
    two = json.loads((tmp_path / "0.json").read_text())
    one = [learn(graph, tmp_path, seed, 1, 10) for seed in range(3)]
    for name in ("val/edge_hit/1", "val/edge_hit/2", "val/chain_hit/2", "val/loss"):
        ones, twos = [run[name] for run in one], [run[name] for run in two]
        spread = max(ones + twos) - min(ones + twos)
        print(name, [round(x, 3) for x in ones], [round(x, 3) for x in twos])
        assert abs(mean(ones) - mean(twos)) <= max(0.05, 0.67 * spread), (name, ones, twos)
    assert min(run["val/edge_hit/1"] for run in two) > 0.5


def test_divided_weights_are_clipped_and_kept_as_whole_ones(graph: KnowledgeGraph, tmp_path: Path) -> None:
    """The gradient's norm over all pieces, decay on matrices alone: the same weights as with copies."""

    def work(mine: int) -> None:
        for name, strategy in (("ddp", ddp()), ("fsdp", Divided())):
            learner = module(graph, settings=TrainingSettings(lr=1e-3, weight_decay=1.0))
            shapes = [weight.shape for weight in learner.parts.parameters()]

            def search(learner: Any = learner, shapes: Any = shapes) -> dict[str, float]:
                assert [weight.shape for weight in learner.parts.parameters()] == shapes
                return {"hits@1": 0.5}

            learner.validate = search
            keep = Whole(tmp_path / f"{name}-{mine}.pt")
            run = trainer(tmp_path, devices=2, strategy=strategy, gradient_clip_val=0.05, callbacks=[keep])
            run.fit(learner, datamodule(graph))

    pair(work)
    copies, *divided = (
        torch.load(tmp_path / name, weights_only=True) for name in ("ddp-0.pt", "fsdp-0.pt", "fsdp-1.pt")
    )
    fresh = dict(module(graph).parts.named_parameters())
    for weights in divided:
        assert copies.keys() == weights.keys() == fresh.keys()
        for name, weight in copies.items():
            torch.testing.assert_close(weights[name], weight, rtol=1e-4, atol=1e-6, msg=name)
    assert len([name for name in copies if not torch.equal(copies[name], fresh[name])]) > 20


def test_fewer_batches_than_processes_are_refused(graph: KnowledgeGraph, tmp_path: Path) -> None:
    def work(mine: int) -> None:
        run = trainer(tmp_path, devices=2, strategy=ddp())
        with pytest.raises(DataError, match="fewer batches of 500 than the 2 processes"):
            run.fit(module(graph), datamodule(graph, batch_size=500))

    pair(work)


def test_a_trainer_that_does_not_know_of_the_others_is_refused(tmp_path: Path) -> None:
    def work(mine: int) -> None:
        config = load_config("train", ["trainer.accelerator=cpu", "logger=none", f"run_dir={tmp_path}"])
        with pytest.raises(ConfigError, match="2 processes were started, and the trainer is set for 1"):
            _trainer(config, [], tmp_path)

    pair(work)


def test_a_batch_script_is_no_task_of_srun(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"SLURM_NTASKS": "2", "SLURM_JOB_NAME": "job", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert _environment() is None
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "1")
    assert _environment() is None
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    with pytest.raises(ConfigError, match="ntasks-per-node=2"):
        _environment()
    monkeypatch.setenv("SLURM_NTASKS_PER_NODE", "2")
    found = _environment()
    assert found is not None
    assert found.world_size() == 2
