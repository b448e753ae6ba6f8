"""MindMap step by step (the numbers are those of its docstring)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rival_worlds import Script, TopicOnly, WordEncoder

from vispath_lit.errors import ConfigError
from vispath_lit.kg.shortest import distances, shortest_paths
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.systems.mindmap import MindMap
from vispath_lit.systems.walking import joined
from vispath_lit.types import Path, Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
ANSWER = {"answer": "euro", "inference_chain": "path 1: so it is", "decision_tree": "root\n  leaf"}


def rival(graph: KnowledgeGraph, script: Script, **values: Any) -> MindMap:
    return MindMap(graph, WordEncoder(), script.client, TopicOnly(), TopicOnly(), **values)


def test_its_steps_in_order(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        mindmap_entities={"names": ["Germany", "the euro", "Germany", " "]},
        mindmap_paths={"text": "Paris is the capital of France."},
        mindmap_neighbours={"text": "Paris lies in France."},
        mindmap_answer=ANSWER,
    )
    (found,) = rival(toy_graph, script).answer([Query("?", topic=toy_graph.entity_index("par"))])
    assert script.order == ["mindmap_entities", "mindmap_paths", "mindmap_neighbours", "mindmap_answer"]
    asked = script.of("mindmap_answer")[0]
    assert asked["path_evidence"] == "Paris is the capital of France."  # 7
    assert asked["neighbour_evidence"] == "Paris lies in France."
    assert asked["start"] == "Paris"
    assert (found.answer, found.answer_entity, found.provenance) == (
        "euro",
        toy_graph.entity_index("eur"),
        "terminal",
    )
    assert found.statement == "path 1: so it is\nroot\n  leaf"  # 8
    assert len(found.paths) == 5  # 5
    for path in found.paths:  # 2 and 3: par, de, eur in this order, joined
        ids = [toy_graph.entity_id(entity) for entity in path.entities]
        assert (ids[0], ids[-1]) == ("par", "eur")
        assert "de" in ids
    lines = script.of("mindmap_neighbours")[0]["neighbours"]
    assert len(lines) == 5  # 6
    assert lines[0] == {"number": 1, "text": "Paris -> located in -> France"}


def test_names_of_one_entity_get_the_next_nearest_ones(toy_graph: KnowledgeGraph) -> None:  # 2
    system = rival(toy_graph, Script())
    names = ["Germany", "the Germany", "Germany of old"]
    near = [[m.entity for m in matches] for matches in system.nearest.search(names, 3)]
    de = toy_graph.entity_index("de")
    assert [ranked[0] for ranked in near] == [de] * 3
    linked = system._linked([], names)
    assert linked[:2] == [de, near[1][1]]
    assert linked[2] == next(entity for entity in near[2] if entity not in linked[:2])
    assert system._linked([de], ["Germany"]) == [de], "the start's own name is no second thing"
    assert system._linked([de], names) == linked
    several = [f"Germany {i}" for i in range(20)]
    count = len(system._linked([], several))
    assert count == min(8, toy_graph.num_entities), "every name that is read has an entity of its own"


def test_paths_through_another_entity_win_and_it_is_no_further_goal(make_graph: MakeGraph) -> None:
    """Two ways from 0 to 3, one of them through 2, which is named later."""
    graph = make_graph(5, 1, [(0, 0, 1), (1, 0, 3), (0, 0, 2), (2, 0, 3), (3, 0, 4)])
    segments = list(rival(graph, Script())._segments([0, 3, 2, 4]))
    assert [[path.entities for path in segment] for segment in segments] == [[(0, 2, 3, 4)]]


def test_what_cannot_be_reached_begins_a_new_segment(make_graph: MakeGraph) -> None:
    graph = make_graph(7, 1, [(0, 0, 1), (2, 0, 3), (4, 0, 5), (5, 0, 6)])
    segments = list(rival(graph, Script())._segments([0, 1, 2, 3, 6, 4]))
    assert [[path.entities for path in segment] for segment in segments] == [[(0, 1)], [(2, 3)], [(6, 5, 4)]]
    assert list(rival(graph, Script(), hops=1)._segments([6, 4])) == []
    assert list(rival(graph, Script())._segments([])) == []


def test_paths_are_kept_from_each_segment_in_turn(toy_graph: KnowledgeGraph) -> None:
    first = [Path((0, i), (0,)) for i in range(1, 9)]
    second = [Path((20, i), (0,)) for i in range(21, 23)]
    kept = rival(toy_graph, Script())._balanced([first, second])
    assert kept == [first[0], second[0], first[1], second[1], first[2]]


def test_few_neighbours_are_as_many_as_there_are(make_graph: MakeGraph) -> None:
    graph = make_graph(3, 1, [(0, 0, 1)])
    script = Script(mindmap_entities={"names": []}, mindmap_answer=ANSWER)
    rival(graph, script).answer([Query("?", topic=0)])
    assert script.of("mindmap_answer")[0]["neighbour_evidence"] == "1. entity 0 -> relation 0 -> entity 1"
    assert script.count("mindmap_neighbours.fallback") == 1  # the evidence as it is
    assert "mindmap_paths" not in script.order, "one entity has no path"


def test_without_evidence_it_answers_alone(toy_graph: KnowledgeGraph) -> None:
    script = Script(mindmap_answer=ANSWER)
    (found,) = rival(toy_graph, script).answer([Query("?", topic=toy_graph.entity_index("lone"))])
    assert (found.answer, found.provenance) == ("euro", "image_only")
    (none,) = rival(toy_graph, script).answer([Query("?")])
    assert (none.answer, none.provenance, none.candidates) == ("euro", "image_only", ())
    assert script.count("mindmap_entities.fallback") == 2
    (silent,) = rival(toy_graph, Script()).answer([Query("?")])
    assert silent.provenance == "abstained"


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.data())
def test_shortest_paths_are_all_of_them(make_graph: MakeGraph, data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 6))
    entity = st.integers(0, count - 1)
    triples = data.draw(st.lists(st.tuples(entity, st.integers(0, 1), entity), min_size=1, max_size=9))
    graph = make_graph(count, 2, triples)
    start, end, most = data.draw(entity), data.draw(entity), data.draw(st.integers(1, 4))
    steps = {(h, r, t) for h, r, t in triples} | {(t, r + 2, h) for h, r, t in triples}
    layer: list[Path] = [Path((start,), ())]
    expected: list[Path] = []
    for _ in range(most):  # the slow way: all walks, hop by hop
        layer = [
            Path((*p.entities, t), (*p.relations, r))
            for p in layer
            for h, r, t in sorted(steps)
            if h == p.end
        ]
        if start != end and (expected := [path for path in layer if path.end == end]):
            break
    found = shortest_paths(graph, start, end, most, 10_000)
    assert set(found) == set(expected)
    assert len(found) == len(expected)
    assert shortest_paths(graph, start, end, most, 2) == found[:2]
    near = distances(graph, start, most)
    if found:
        assert near[end] == len(found[0].relations)
    for path in found:
        assert all(near[a] + 1 == near[b] for a, b in pairwise(path.entities))


def test_joined_paths_meet_where_they_end() -> None:
    whole = joined([Path((1, 2), (0,)), Path((2, 3, 4), (1, 2))])
    assert (whole.entities, whole.relations) == ((1, 2, 3, 4), (0, 1, 2))


@pytest.mark.parametrize("wrong", ["hops", "paths", "neighbours", "batch_size"])
def test_values_that_cannot_work_are_refused(toy_graph: KnowledgeGraph, wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"system.{wrong} is 0"):
        rival(toy_graph, Script(), **{wrong: 0})
