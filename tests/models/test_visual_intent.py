from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from learned_worlds import EvenAnalyzer, ring_triples
from pictured_worlds import ColourCells, cued, learner
from PIL import Image

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.states import StateBuilder, StateSettings
from vispath_lit.data.supervision import supervise
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.guided_walk import WalkResult
from vispath_lit.models.intents.picture import PictureReader, Seen
from vispath_lit.models.neighbourhoods.facts import CommonFacts
from vispath_lit.models.picture_loss import tail_facts
from vispath_lit.types import Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


@pytest.mark.parametrize(("image_tokens", "low", "high"), [(2, 0.9, 1.0), (0, 0.5, 0.8)])
def test_the_picture_decides_what_the_words_leave_open(
    image_tokens: int, low: float, high: float, graph: KnowledgeGraph, tmp_path: Path
) -> None:
    data = QuestionDataModule(
        graph,
        supervise(graph, cued(tmp_path, 240, seed=0)),
        supervise(graph, cued(tmp_path, 80, seed=1)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        batch_size=10,
        images=True,
    )
    run = pl.Trainer(
        default_root_dir=tmp_path,
        max_epochs=3,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        use_distributed_sampler=False,
        num_sanity_val_steps=0,
    )
    module = learner(graph, image_tokens)
    run.fit(module, data)
    assert low <= run.validate(module, data, verbose=False)[0]["val/edge_hit/1"] <= high


def test_a_pictures_own_loss_moves_nothing_but_what_reads_it(graph: KnowledgeGraph, tmp_path: Path) -> None:
    data = QuestionDataModule(
        graph,
        supervise(graph, cued(tmp_path, 10, seed=0)),
        supervise(graph, cued(tmp_path, 10, seed=1)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        batch_size=10,
        images=True,
    )
    module = learner(graph, 2)
    batch = next(iter(data.val_dataloader()))
    result: WalkResult = module.walk.run(batch, 0.0)
    result.losses["picture"].backward()  # type: ignore[no-untyped-call]
    moved = {
        name for name, weight in module.named_parameters() if weight.grad is not None and weight.grad.any()
    }
    assert moved
    # The relation's own vectors are what a picture speaks in.
    assert all(name.startswith(("parts.intent.picture.", "parts.intent.steps.")) for name in moved)


def test_the_facts_of_a_tail_are_asked_as_far_as_the_step_is_open(
    make_graph: MakeGraph, tmp_path: Path
) -> None:
    shared = [(head, relation, relation) for head in range(8) for relation in (4, 5)]
    graph = make_graph(40, 6, {*ring_triples(), *shared})
    facts = CommonFacts(graph, least=4)
    asked = cued(tmp_path, 12, seed=0)
    without = [replace(question, image=None) if i % 3 == 0 else question for i, question in enumerate(asked)]
    supervision = supervise(graph, without)
    analyses = EvenAnalyzer().analyze([Query(question.text) for question in supervision.questions])
    builder = StateBuilder(graph, supervision, analyses, StateSettings(edges=10), images=True)
    states = builder.batch(range(12), [0]).first()
    there = torch.tensor([question.image is not None for question in supervision.questions])
    torch.manual_seed(0)
    logits, odds = torch.randn(len(states.frontier)), torch.randn(12, facts.dim)
    seen = Seen(there, torch.zeros(12, 12), odds, odds)
    weight = states.weight * there[states.frontier.edge_path]
    found = tail_facts(states, seen, logits, weight, facts)

    slow = []
    for state in torch.nonzero(there)[:, 0].tolist():
        gold, mine = int(states.gold_edge[state]), states.frontier.edge_path == state
        right = float(logits[mine].softmax(0)[states.weight[mine] > 0].sum())
        true = facts.encode(states.frontier.tail[gold : gold + 1])[0]
        share = odds[state].sigmoid()
        asked_of = -(true * share.log() + (1 - true) * (1 - share).log()).sum()
        slow.append((1 - right) * float(asked_of))
    assert len(slow) == 8
    assert float(found) == pytest.approx(float(np.mean(slow)), rel=1e-4)


def test_a_picture_tells_what_any_neighbourhood_should_be_like_once_it_is_trusted() -> None:
    torch.manual_seed(0)
    none = torch.zeros(0, dtype=torch.long)
    reader = PictureReader(ColourCells(), 16, 2, 2, 0.0, facts=none, shares=torch.zeros(0), near=5)
    relations, hidden, state = torch.randn(8, 16), torch.randn(3, 16), torch.tensor([0, 1, 0])
    seen = reader([Query("with", Image.new("RGB", (8, 8), "red")), Query("without")], relations)
    assert seen.tails.shape == (2, 5)
    _, near = reader.told(seen, state, hidden, relations)
    assert near is not None
    assert near.shape == (3, 5)
    assert not near.any()
    torch.nn.init.ones_(reader.trust_near.bias)
    _, near = reader.told(seen, state, hidden, relations)
    assert near is not None
    assert torch.equal(near[[0, 2]], seen.tails[[0, 0]])
    assert not near[1].any()


def test_what_a_picture_tells_of_facts_is_measured_from_how_common_they_are() -> None:
    shares = torch.tensor([0.75, 0.1, 1.0, 0.001])
    reader = PictureReader(ColourCells(), 16, 2, 2, 0.0, facts=torch.tensor([0, 0, 1, 1]), shares=shares)
    torch.nn.init.zeros_(reader.of_facts.weight)
    seen = reader([Query("with", Image.new("RGB", (8, 8), "red"))], torch.randn(8, 16))
    assert not seen.tails.any()
    torch.testing.assert_close(seen.odds[0].sigmoid(), torch.tensor([0.75, 0.1, 0.98, 0.02]))
