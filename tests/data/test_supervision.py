from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vispath_lit.data.supervision import AcceptedPaths, has_edge, supervise
from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
Triple = tuple[int, int, int]
ENTITIES, RELATIONS = 7, 2


def steps(accepted: AcceptedPaths) -> set[tuple[tuple[int, int], ...]]:
    """The accepted paths as tuples of (relation, tail)."""
    rows = zip(accepted.relations.tolist(), accepted.tails.tolist(), strict=True)
    return {tuple((r, t) for r, t in zip(*row, strict=True) if r >= 0) for row in rows}


def question(**values: object) -> Question:
    return Question(id="q7", text="?", **values)  # type: ignore[arg-type]


def test_gold_paths_are_used_as_they_are(toy_graph: KnowledgeGraph) -> None:
    gold = ((("borders", "de"), ("capital", "ber")), (("~borders", "de"), ("largest_city", "ber")))
    found = supervise(toy_graph, [question(topic_entity="fr", gold_paths=gold, answer_ids=("eu",), hops=2)])
    (accepted,) = found.accepted
    index, relation = toy_graph.entity_index, toy_graph.relation_index
    assert accepted.start == index("fr")
    assert accepted.hops == 2
    assert accepted.source == "gold"
    assert accepted.weights.tolist() == [1, 1]
    assert steps(accepted) == {
        ((relation("borders"), index("de")), (relation("capital"), index("ber"))),
        ((relation("~borders"), index("de")), (relation("largest_city"), index("ber"))),
    }
    assert (found.report.questions, found.report.gold) == (1, 1)


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ((("capital", "ber"),), "not an edge"),
        ((("~capital", "par"),), "not an edge"),
        ((("capitol", "par"),), "capitol"),
        ((("capital", "nowhere"),), "nowhere"),
        ((), "empty"),
    ],
)
def test_a_gold_path_that_the_graph_lacks_names_question_and_id(
    toy_graph: KnowledgeGraph, path: tuple[tuple[str, str], ...], word: str
) -> None:
    bad = question(topic_entity="fr", gold_paths=(path,))
    good = question(topic_entity="fr", gold_paths=((("capital", "par"),),))
    with pytest.raises(DataError, match=f"q7.*{word}"):
        supervise(toy_graph, [bad, good])
    found = supervise(toy_graph, [bad, good], on_error="skip")
    assert (found.report.skipped, found.report.gold, len(found)) == (1, 1, 1)
    assert word in found.report.problems[0]


def test_every_question_is_counted_once(toy_graph: KnowledgeGraph) -> None:
    questions = [
        question(topic_entity="fr", answer_ids=("ber",)),
        question(topic_entity="fr", answer_ids=("lone",)),
        question(topic_entity="fr"),
        question(answer_ids=("ber",)),
    ]
    report = supervise(toy_graph, questions).report
    assert (report.weak, report.unreachable, report.unsupervised, report.questions) == (1, 1, 2, 4)


def test_weak_paths_are_weighed_by_precision(toy_graph: KnowledgeGraph) -> None:
    """From France, three neighbours by `borders`, one of them an answer; `capital` reaches nothing else."""
    (accepted,) = supervise(toy_graph, [question(topic_entity="fr", answer_ids=("de",))]).accepted
    names = [toy_graph.relation_id(r) for r in accepted.relations[:, 0].tolist()]
    assert sorted(names) == ["borders", "~borders"]
    assert accepted.weights.tolist() == pytest.approx([1 / 3, 1 / 3])
    assert accepted.hops == 1
    assert accepted.source == "weak"


def test_the_most_precise_weak_paths_come_first_and_are_bounded(toy_graph: KnowledgeGraph) -> None:
    weak = question(topic_entity="fr", answer_ids=("ber",))
    (accepted,) = supervise(toy_graph, [weak]).accepted
    assert accepted.weights.tolist() == sorted(accepted.weights.tolist(), reverse=True)
    (fewer,) = supervise(toy_graph, [weak], max_paths=2).accepted
    assert len(fewer.weights) == 2
    assert fewer.weights.tolist() == accepted.weights[:2].tolist()


def test_a_search_beyond_its_bound_is_given_up_and_counted(toy_graph: KnowledgeGraph) -> None:
    report = supervise(toy_graph, [question(topic_entity="fr", answer_ids=("zur",))], max_edges=1).report
    assert (report.too_large, report.weak) == (1, 0)


def slow_weak(
    triples: set[Triple], start: int, answers: set[int], d_max: int, inverse: bool
) -> dict[tuple[Triple, ...], float]:
    """Every walk, hop by hop, until the first hop at which some end in an answer."""
    edges = [(h, r, t) for h, r, t in triples]
    if inverse:
        edges += [(t, r + RELATIONS, h) for h, r, t in triples]
    walks: list[tuple[Triple, ...]] = [()]
    for _ in range(d_max):
        walks = [(*w, e) for w in walks for e in edges if e[0] == (w[-1][2] if w else start)]
        if hits := [w for w in walks if w[-1][2] in answers]:
            ends: dict[tuple[int, ...], set[int]] = {}
            for walk in walks:
                ends.setdefault(tuple(e[1] for e in walk), set()).add(walk[-1][2])
            reached = {walk: ends[tuple(e[1] for e in walk)] for walk in hits}
            return {walk: len(e & answers) / len(e) for walk, e in reached.items()}
    return {}


@given(
    triples=st.sets(
        st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
        min_size=1,
        max_size=12,
    ),
    answers=st.sets(st.integers(1, ENTITIES - 1), min_size=1, max_size=3),
    inverse=st.booleans(),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_weak_paths_equal_an_exhaustive_walk(
    make_graph: MakeGraph, triples: set[Triple], answers: set[int], inverse: bool
) -> None:
    graph = make_graph(ENTITIES, RELATIONS, sorted(triples))
    asked = question(topic_entity="e0", answer_ids=tuple(f"e{a}" for a in sorted(answers)))
    found = supervise(graph, [asked], d_max=3, max_paths=10_000, inverse=inverse)
    expected = slow_weak(triples, 0, answers, 3, inverse)
    if not expected:
        assert found.report.unreachable == 1
        return
    (accepted,) = found.accepted
    got = zip(accepted.relations.tolist(), accepted.tails.tolist(), accepted.weights.tolist(), strict=True)
    assert {(tuple(r), tuple(t)): w for r, t, w in got} == {
        (tuple(e[1] for e in walk), tuple(e[2] for e in walk)): pytest.approx(precision)
        for walk, precision in expected.items()
    }


@given(
    st.sets(
        st.tuples(st.integers(0, ENTITIES - 1), st.integers(0, RELATIONS - 1), st.integers(0, ENTITIES - 1)),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_has_edge_knows_each_edge_and_no_other(make_graph: MakeGraph, triples: set[Triple]) -> None:
    graph = make_graph(ENTITIES, RELATIONS, sorted(triples))
    for h, r, t in itertools.product(range(ENTITIES), range(RELATIONS), range(ENTITIES)):
        assert has_edge(graph, h, r, t) == ((h, r, t) in triples)
        assert has_edge(graph, t, r + RELATIONS, h) == ((h, r, t) in triples)


def test_next_steps_follow_a_prefix_and_keep_the_greatest_weight() -> None:
    accepted = AcceptedPaths(
        start=0,
        relations=np.array([[1, 2], [1, 2], [1, 3], [4, -1]]),
        tails=np.array([[5, 6], [5, 6], [5, 7], [8, -1]]),
        weights=np.array([0.2, 0.6, 1.0, 0.5], dtype=np.float32),
        hops=2,
        source="weak",
    )
    first = {(r, t): w for r, t, w in accepted.next_steps([], [])}
    assert first == {(1, 5): pytest.approx(1.0), (4, 8): pytest.approx(0.5)}
    second = {(r, t): w for r, t, w in accepted.next_steps([1], [5])}
    assert second == {(2, 6): pytest.approx(0.6), (3, 7): pytest.approx(1.0)}
    assert accepted.next_steps([4], [8]) == []
    assert accepted.next_steps([1, 2], [5, 6]) == []
    assert accepted.next_steps([2], [5]) == []


def test_skip_goes_on_without_unknown_answers_and_names_the_lost(toy_graph: KnowledgeGraph) -> None:
    some = Question("some", "?", topic_entity="fr", answer_ids=("nowhere", "de"))
    none = Question("none", "?", topic_entity="fr", answer_ids=("nowhere",))
    far = Question("far", "?", topic_entity="fr", answer_ids=("lone",))
    with pytest.raises(DataError, match=r"some.*nowhere"):
        supervise(toy_graph, [some])
    found = supervise(toy_graph, [some, none, far], on_error="skip")
    assert [one.id for one in found.questions] == ["some"]
    assert steps(found.accepted[0]) == steps(
        supervise(toy_graph, [question(topic_entity="fr", answer_ids=("de",))]).accepted[0]
    )
    assert found.without == {"skipped": ("none",), "unreachable": ("far",)}
    assert "'nowhere'" in found.report.problems[0]
