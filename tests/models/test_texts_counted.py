from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.mapped_table import mapped_table, unit_bytes, unit_floats
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.distill import DistillSettings
from vispath_lit.models.texts.two_stage import TwoStage
from vispath_lit.protocols import TextProvider
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
QUICK = DistillSettings(edges=60, walks=40, hops=4, edge_steps=60, chain_steps=60)
QUESTION = "What is relation 1 of the relation 2 of what is shown?"


class Counting:
    """An encoder with cold caches that notes what it embeds: each distinct text once."""

    def __init__(self, real: MiniLM) -> None:
        self.real, self.dim, self.fingerprint = real, real.dim, real.fingerprint
        self.embedded: set[str] = set()

    def encode(self, texts: Sequence[str]) -> Tensor:
        self.embedded |= set(texts)
        return self.real.encode(texts)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        self.embedded |= set(texts)
        return self.real.tokens(texts)


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM(None, dtype="float32")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def hubs(make_graph: MakeGraph) -> KnowledgeGraph:
    """400 entities, each with more edges than any shortlist takes."""
    rng = np.random.default_rng(0)
    triples = {(h, int(rng.integers(9)), int(t)) for h in range(400) for t in rng.permutation(400)[:80]}
    return make_graph(400, 9, sorted(triples))


def system(graph: KnowledgeGraph, encoder: Counting, texts: TextProvider) -> VisPath:
    return VisPath(
        graph=graph,
        text_encoder=encoder,
        texts=texts,
        analyzer=PatternAnalyzer(),
        grounder=TopicGrounder(),
        intent=QuestionIntent(encoder),
        edge_scorer=FixedEdgeScorer(),
        chain_scorer=FixedChainScorer(),
        examiner=NoExaminer(),
        judge=DepthJudge(graph),
        selector=BestPathSelector(graph),
        search=SearchSettings(),
    )


@pytest.mark.parametrize("kept", ["float16", "int8"])
@pytest.mark.parametrize("table_mb", [64, 0])
def test_a_composed_search_embeds_its_question_alone(
    hubs: KnowledgeGraph, encoder: MiniLM, cache: Path, kept: str, table_mb: int
) -> None:
    """With composed edges on disk and without."""
    counting = Counting(encoder)
    texts = Composed(
        hubs,
        counting,
        cache,
        table_mb=table_mb,
        settings=QUICK,
        whole_labels=True,
        kept=kept,  # type: ignore[arg-type]
    )
    counting.embedded.clear()
    (found,) = system(hubs, counting, texts).answer([Query(QUESTION, topic=3, depth=4)])
    assert len(found.paths[0].relations) == 4
    assert counting.embedded
    assert all(text.startswith(QUESTION) for text in counting.embedded)
    assert len(counting.embedded) <= 2  # Q, and Q with its sketch


def embedded(graph: KnowledgeGraph, encoder: MiniLM, cache: Path, topic: int, texts: int | None) -> int:
    """Texts that a two-stage search of four hops embeds for one question, where the labels are known."""
    counting = Counting(encoder)
    provider = TwoStage(graph, counting, cache, texts=texts, settings=QUICK, whole_labels=True)
    counting.embedded.clear()
    (found,) = system(graph, counting, provider).answer([Query(QUESTION, topic=topic, depth=4)])
    assert len(found.paths[0].relations) == 4
    return len(counting.embedded)


def test_a_two_stage_search_embeds_at_most_900_texts(
    hubs: KnowledgeGraph, encoder: MiniLM, cache: Path
) -> None:
    """At the defaults and the full depth, where every kept path ends at a hub."""
    default = inspect.signature(TwoStage).parameters["texts"].default
    assert default == 900
    counts = [embedded(hubs, encoder, cache, topic, default) for topic in (3, 80)]
    assert 700 < max(counts) <= 900
    assert embedded(hubs, encoder, cache, 3, None) > 900


def test_bytes_are_as_good_as_floats(hubs: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    fine = Composed(hubs, encoder, cache, settings=QUICK, whole_labels=True)
    coarse = Composed(hubs, encoder, cache, settings=QUICK, whole_labels=True, kept="int8")
    relation, tail = torch.arange(9).repeat(5), torch.arange(45)
    vectors = [stage.edge_vectors(relation, tail).dense() for stage in (fine, coarse)]
    assert float((vectors[0] * vectors[1]).sum(1).min()) > 0.999
    sizes = [file.stat().st_size for file in sorted((cache / "labels").glob("*.npy"))]
    assert len(sizes) == 2
    assert sorted(sizes)[0] < 0.51 * sorted(sizes)[1] + 128


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_unit_bytes_keep_the_direction(seed: int, dim: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(3, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    again = unit_floats(unit_bytes(vectors))
    assert np.abs(again - vectors).max() < 0.01
    assert unit_floats(unit_bytes(np.zeros((1, dim)))).tolist() == [[0.0] * dim]


def test_a_table_of_other_numbers_is_made_again(tmp_path: Path) -> None:
    rows = np.eye(4, dtype=np.float32)
    first = mapped_table(tmp_path / "t.npy", (4, 4), lambda some: rows[some], 2, "testing")
    second = mapped_table(tmp_path / "t.npy", (4, 4), lambda some: rows[some], 2, "testing", "int8")
    assert [table.dtype.name for table in (first, second)] == ["float16", "int8"]
    assert np.array_equal(unit_floats(second), rows)


def test_other_numbers_are_refused(hubs: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    with pytest.raises(ConfigError, match="float16, int8"):
        Composed(hubs, encoder, cache, settings=QUICK, kept="int4")  # type: ignore[arg-type]
