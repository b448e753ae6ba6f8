from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector, rank_endpoints, share_of
from vispath_lit.models.similarity import BLOCK, grouped_dot
from vispath_lit.types import (
    Analysis,
    Evidence,
    Frontier,
    Intents,
    Path,
    Paths,
    Prediction,
    Query,
    Rows,
    States,
)


def unit(n: int, d: int = 16, seed: int = 0) -> Tensor:
    rows = torch.randn(n, d, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(rows, dim=1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=40))
def test_grouped_dot_equals_one_product_an_item(items: list[tuple[int, int]]) -> None:
    table, vectors = unit(7), unit(5, seed=1)
    group, index = (torch.tensor([item[k] for item in items], dtype=torch.long) for k in (0, 1))
    found = grouped_dot(Rows(table, index), group, vectors)
    expected = [
        sum(a * b for a, b in zip(table[i].tolist(), vectors[g].tolist(), strict=True)) for g, i in items
    ]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


def test_a_product_does_not_depend_on_its_neighbours() -> None:
    table, vector = unit(BLOCK * 2 + 7, 384), unit(1, 384, seed=1)
    index = torch.arange(len(table))
    together = grouped_dot(Rows(table, index), torch.zeros_like(index), vector)
    alone = [grouped_dot(Rows(table, index[i : i + 1]), index[:1], vector) for i in range(0, len(table), 97)]
    assert torch.equal(together[::97], torch.cat(alone))
    assert torch.equal(table, unit(BLOCK * 2 + 7, 384))


def test_half_precision_tables_are_multiplied_in_the_precision_of_the_vectors() -> None:
    table, vectors = unit(5).half(), unit(2, seed=1)
    found = grouped_dot(Rows(table, torch.arange(5)), torch.tensor([0, 0, 1, 1, 1]), vectors)
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx(
        [float(table[i].float() @ vectors[int(i > 1)]) for i in range(5)], abs=1e-6
    )


def test_the_fixed_scorers_are_cosines_with_their_own_intent_and_question() -> None:
    paths = Paths.starts(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1]))
    frontier = Frontier(paths, torch.tensor([0, 0, 2]), torch.tensor([0, 1, 0]), torch.tensor([3, 4, 5]))
    texts, intents, objective = unit(3), unit(3, seed=1), unit(2, seed=2)
    rows = Rows(texts, torch.tensor([2, 0, 1]))
    edges = FixedEdgeScorer()(frontier, rows, Intents(intents, objective, ["", ""]))
    picked = [(2, 0), (0, 0), (1, 2)]
    assert edges.tolist() == pytest.approx([float(texts[i] @ intents[p]) for i, p in picked], abs=1e-6)
    chains = FixedChainScorer()(paths, rows, objective, Intents(intents, objective, ["", ""]))
    of_question = [(2, 0), (0, 0), (1, 1)]
    assert chains.tolist() == pytest.approx(
        [float(texts[i] @ objective[q]) for i, q in of_question], abs=1e-6
    )


class LengthEncoder:
    dim = 2
    fingerprint = "length"

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.tensor([[math.cos(len(text)), math.sin(len(text))] for text in texts])

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def test_the_fixed_intent_of_every_path_is_its_question() -> None:
    paths = Paths.starts(torch.tensor([5, 6, 7]), torch.tensor([0, 1, 1]))
    analysis = Analysis("", "", "", (1.0,))
    encoder = LengthEncoder()
    intents = QuestionIntent(encoder)(States([Query("a"), Query("bbb")], [analysis] * 2, paths))
    assert torch.equal(intents.vectors, encoder.encode(["a", "bbb", "bbb"]))
    assert torch.equal(intents.question, encoder.encode(["a", "bbb"]))
    assert list(intents.texts) == ["", ""]


def test_no_examiner_has_no_opinion() -> None:
    assert NoExaminer().examine([Query("a"), Query("b")], [[Path((0,), ())], []]) == [[], []]


def test_the_depth_judge_is_content_at_the_predicted_depth(toy_graph: KnowledgeGraph) -> None:
    france, paris = toy_graph.entity_index("fr"), toy_graph.entity_index("par")
    capital = toy_graph.relation_index("capital")
    kept = [Path((france, paris), (capital,), 0.9), Path((paris, france), (capital + 7,), 0.8)]
    two, one = Analysis("", "", "", (0.2, 0.8)), Analysis("", "", "", (0.8, 0.2))
    found = DepthJudge(toy_graph).judge([Query("q")] * 3, [two, one, one], [kept, kept[1:], []], 1)
    assert [evidence.answerability for evidence in found] == [0.0, 1.0, 0.0]
    assert found[0].statement == "France capital Paris; Paris capital of France"
    assert [(e.answer, e.answer_entity) for e in found] == [
        ("Paris", paris),
        ("France", france),
        (None, None),
    ]
    assert (found[1].paths, found[1].hop, found[2].statement) == ((kept[1],), 1, "")


@pytest.fixture
def paths() -> list[Path]:
    return [
        Path((0, 3), (0,), 0.7),
        Path((0, 1), (1,), 0.7),
        Path((0, 2), (0,), 0.9),
        Path((0, 1), (0,), 0.5),
    ]


def test_endpoints_are_ranked_by_score_then_count_then_order(paths: list[Path]) -> None:
    assert rank_endpoints(paths) == [2, 1, 3]
    assert rank_endpoints([*paths[:2], Path((0, 5), (0,), 0.7)]) == [3, 1, 5]
    assert rank_endpoints([]) == []


def test_the_confidence_is_the_share_of_a_softmax(paths: list[Path]) -> None:
    weights = [math.exp(path.score / 0.2) for path in paths]
    assert share_of(1, paths, 0.2) == pytest.approx((weights[1] + weights[3]) / sum(weights))
    assert sum(share_of(entity, paths, 1e-4) for entity in (1, 2, 3)) == pytest.approx(1)


def test_the_selector_answers_from_evidence_then_paths_then_not_at_all(
    toy_graph: KnowledgeGraph, paths: list[Path]
) -> None:
    selector = BestPathSelector(toy_graph)
    judged = Evidence("z", 1.0, "x", 3, tuple(paths), 1)
    undecided = Evidence("z", 1.0, None, None, tuple(paths), 1)
    found = selector.select([Query("q")] * 4, [judged, undecided, None, None], [paths, paths, paths, []])
    labels = [toy_graph.label(entity) for entity in (3, 2, 2)]
    assert [(answer, entity, origin) for answer, entity, origin in found] == [
        (labels[0], 3, "stopped"),
        (labels[1], 2, "stopped"),
        (labels[2], 2, "terminal"),
        ("", None, "abstained"),
    ]
    sure = Prediction("x", 1, "stopped", paths=tuple(paths))
    assert selector.confidence(sure) == share_of(1, paths, selector.temperature)
    assert selector.confidence(Prediction("", None, "abstained")) == 0
    with pytest.raises(ConfigError, match=r"selector\.temperature"):
        BestPathSelector(toy_graph, temperature=0)
