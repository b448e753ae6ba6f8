from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, disturb, ring_triples, states_and_frontier
from PIL.Image import Image
from PIL.Image import new as new_image
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.backbones.none import NoBackbone
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.neighbourhoods.facts import CommonFacts
from vispath_lit.types import Intents, Paths, Query, States

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


@pytest.fixture(scope="module")
def encoder() -> WordEncoder:
    return WordEncoder()


class Brightness:
    """An image encoder: mean of the three colours."""

    dim = 3
    fingerprint = "brightness"

    def encode(self, images: Sequence[Image]) -> Tensor:
        means = [np.asarray(image, dtype=np.float32).mean((0, 1)) for image in images]
        return torch.nn.functional.normalize(torch.from_numpy(np.stack(means)) + 1, dim=1)


def test_an_intent_sees_its_own_picture_only(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, Brightness(), width=16, image_tokens=2)
    blind = LearnedIntent(graph, encoder, Brightness(), width=16)
    assert set(blind.state_dict()) < set(intent.state_dict())
    disturb(intent.eval())
    pictures = [new_image("RGB", (8, 6), colour) for colour in ("red", "blue")]
    paths = Paths.starts(torch.tensor([1, 1, 1]), torch.arange(3))
    analyses = EvenAnalyzer().analyze([Query("nick1")] * 3)

    def told(*images: Image | None) -> Tensor:
        found: Intents = intent(States([Query("nick1", image) for image in images], analyses, paths))
        assert found.relations is not None
        return found.relations

    red, blue, none = told(pictures[0], pictures[1], None)
    assert not torch.allclose(red, blue)
    assert not none.any()
    torch.testing.assert_close(told(None, pictures[0], pictures[1]), torch.stack([none, red, blue]))
    with pytest.raises(ConfigError, match=r"intent\.image_tokens is 2"):
        LearnedIntent(graph, encoder, image_tokens=2)


class Cells(Brightness):
    """An image encoder with four cells of three colours."""

    def __init__(self) -> None:
        self.cells = FourCells()


class FourCells:
    dim, side, fingerprint = 12, 2, "four"

    def encode(self, images: Sequence[Image]) -> Tensor:
        small = [np.asarray(image.resize((2, 2)), dtype=np.float32).reshape(-1) + 1 for image in images]
        return torch.nn.functional.normalize(torch.from_numpy(np.stack(small)), dim=1)


def test_what_a_picture_tells_adds_to_edges_once_it_is_trusted(
    make_graph: MakeGraph, encoder: WordEncoder
) -> None:
    shared = [(head, relation, relation) for head in range(8) for relation in (4, 5)]
    graph = make_graph(40, 6, {*ring_triples(), *shared})
    facts = CommonFacts(graph, least=4)
    assert facts.dim == 2
    intent = LearnedIntent(graph, encoder, Cells(), neighbourhood=facts, width=16, image_tokens=2).eval()
    scorer = LearnedEdgeScorer(graph, encoder, width=16, neighbourhood=facts).eval()
    queries = [Query("nick1", new_image("RGB", (8, 6), "red")), Query("nick1")]
    paths = Paths.starts(torch.tensor([1, 2]), torch.arange(2))
    frontier = expand(graph, paths)
    texts = PlainTexts(graph, encoder).stages[0].edge_vectors(frontier.relation, frontier.tail)

    def logits() -> tuple[Intents, Tensor]:
        found: Intents = intent(States(queries, EvenAnalyzer().analyze(queries), paths))
        return found, scorer(frontier, texts, found)

    found, before = logits()
    assert found.relations is not None
    assert found.near is not None
    assert not found.relations.any()
    torch.testing.assert_close(before, FixedEdgeScorer()(frontier, texts, found))
    disturb(intent)
    found, _ = logits()
    assert found.relations is not None
    assert found.near is not None
    assert found.relations[0].any()
    assert not found.relations[1].any()  # no picture
    assert not found.near[1].any()
    blind = replace(found, relations=None, near=None)
    told = scorer(frontier, texts, found) - scorer(frontier, texts, blind)
    for edge in range(len(frontier)):
        path, relation, tail = int(frontier.edge_path[edge]), frontier.relation[edge], frontier.tail[edge]
        slow = found.relations[path, relation] + found.near[path] @ facts.encode(tail[None])[0]
        torch.testing.assert_close(told[edge], slow, atol=1e-4, rtol=1e-4)


class Glance(nn.Module):
    """A backbone that sees whether there is a picture."""

    dim = 4

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.ones(4))

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        there = torch.tensor([[query.image is not None] for query in queries])
        return self.seen.expand(len(queries), 1, 4), there


def test_an_intent_reads_its_backbone_which_is_saved_once(
    graph: KnowledgeGraph, encoder: WordEncoder
) -> None:
    backbone = Glance()
    intent = LearnedIntent(graph, encoder, vlm=backbone, width=16)
    parts = LearnedParts({"intent": intent, "vlm": backbone})
    assert [name for name in parts.state_dict() if name.endswith("seen")] == ["vlm.seen"]
    disturb(parts.eval())
    assert intent.sees
    assert not LearnedIntent(graph, encoder, vlm=NoBackbone(), width=16).sees
    queries = [Query("nick1", new_image("RGB", (2, 2))), Query("nick1")]
    paths = Paths.starts(torch.tensor([1, 1]), torch.arange(2))
    found: Intents = intent(States(queries, EvenAnalyzer().analyze(queries), paths))
    assert not torch.allclose(found.vectors[0], found.vectors[1])
    found.vectors.sum().backward()  # type: ignore[no-untyped-call]
    assert backbone.seen.grad is not None
    assert backbone.seen.grad.abs().sum() > 0


def test_the_intent_depends_on_the_path_and_on_each_word(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, width=16).eval()
    disturb(intent)
    paths = Paths(
        torch.tensor([[0, 1], [0, 1], [0, 4]]),
        torch.tensor([[0], [1], [0]]),
        torch.tensor([0, 0, 0]),
        torch.zeros(3),
    )
    analyses = EvenAnalyzer().analyze([Query("")])
    vectors = intent(States([Query("nick1 then nick2")], analyses, paths)).vectors
    assert not torch.allclose(vectors[0], vectors[1])
    swapped = intent(States([Query("nick2 then nick1")], analyses, paths)).vectors
    assert not torch.allclose(vectors[0], swapped[0])


def test_a_reading_shared_by_all_hops_changes_nothing(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    states, _ = states_and_frontier(graph, 1)
    intent = LearnedIntent(graph, encoder, width=16).eval()
    disturb(intent)
    longer = [Query("nick1 then nick2 then nick3 then nick4 then nick5"), *states.queries]
    reading = intent.read(longer).select(torch.arange(1, len(longer)))
    torch.testing.assert_close(intent(states, reading).vectors, intent(states).vectors)


def test_phrases_are_the_nearest_relation_labels(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, width=16)
    vectors = encoder.encode(["relation 4", "inverse of relation 2"])
    found = intent.phrases(vectors, top=2)
    assert found[0].split("; ")[0] == "relation 4"
    assert found[1].split("; ")[0] == "inverse of relation 2"
    assert len(found[0].split("; ")) == 2
