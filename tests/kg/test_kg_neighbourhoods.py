"""Sampled ego-graphs against a slow second implementation, and the distances from a start."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vispath_lit.errors import ConfigError
from vispath_lit.kg import neighbourhoods
from vispath_lit.kg.distances import from_start
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.neighbourhoods import EgoGraphs, sample
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Paths

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
Edge = tuple[int, int]
N, R = 30, 3


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    """Entity 0 is a hub in both directions, 29 is isolated, 1 has a self loop."""
    triples = [(0, 0, t) for t in range(1, 29)] + [(h, 1, 0) for h in range(2, 28, 2)]
    triples += [(1, 2, 1), (1, 0, 2), (2, 1, 3), (0, 2, 5), (0, 2, 6), (3, 2, 0)]
    return make_graph(N, R, triples)


def edges_of(graph: KnowledgeGraph, entity: int) -> list[Edge]:
    """Every (signed relation, neighbour) of an entity, from the arrays read triple by triple."""
    found = []
    for head in range(graph.num_entities):
        for i in range(int(graph.out_indptr[head]), int(graph.out_indptr[head + 1])):
            relation, tail = int(graph.out_relation[i]), int(graph.out_tail[i])
            if head == entity:
                found.append((relation, tail))
            if tail == entity:
                found.append((relation + graph.num_relations, head))
    return sorted(found)


def taken(ego: EgoGraphs, centre: int) -> list[Edge]:
    rows = ego.centre == centre
    return list(zip(ego.relation[rows].tolist(), ego.neighbour[rows].tolist(), strict=True))


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    entities=st.lists(st.integers(0, N - 1), min_size=1, max_size=8),
    limit=st.integers(1, 60),
    seed=st.integers(0, 2**63),
    scanned=st.sampled_from([0, 5, 1024]),
)
def test_a_sample_takes_each_relation_evenly(
    graph: KnowledgeGraph,
    entities: list[int],
    limit: int,
    seed: int,
    scanned: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(neighbourhoods, "SCANNED", scanned)
    ego = sample(graph, np.array(entities), limit, seed)
    assert (np.diff(ego.centre) >= 0).all()
    for centre, entity in enumerate(entities):
        every, mine = edges_of(graph, entity), taken(ego, centre)
        assert len(mine) == min(len(every), limit)
        assert mine == sorted(set(mine))
        assert set(mine) <= set(every)
        has, got = Counter(r for r, _ in every), Counter(r for r, _ in mine)
        cut = [got[r] for r in has if got[r] < has[r]]
        if cut:  # nobody got more than those that were cut, but for the one that is left over
            assert max(got.values()) - min(cut) <= 1


def test_what_an_entity_gets_does_not_depend_on_its_company(graph: KnowledgeGraph) -> None:
    everyone = sample(graph, np.arange(N), 7, seed=3)
    for entity in range(N):
        assert taken(sample(graph, np.array([5, entity]), 7, seed=3), 1) == taken(everyone, entity)
    other = sample(graph, np.arange(N), 7, seed=4)
    assert taken(other, 0) != taken(everyone, 0)


def test_every_edge_of_a_relation_is_as_likely(graph: KnowledgeGraph) -> None:
    counts: dict[int, Counter[int]] = defaultdict(Counter)
    rounds = 4000
    for seed in range(rounds):
        for relation, neighbour in taken(sample(graph, np.array([0]), 2, seed), 0):
            counts[relation][neighbour] += 1
    # Entity 0 has four signed relations, of which each sample takes two.
    for relation, drawn in counts.items():
        expected = rounds / 2 / sum(r == relation for r, _ in edges_of(graph, 0))
        assert sum(drawn.values()) == pytest.approx(rounds / 2, rel=0.1)
        assert all(abs(n - expected) < 5 * expected**0.5 for n in drawn.values())
    assert len(counts) == 4


def test_an_isolated_entity_has_no_edges(graph: KnowledgeGraph) -> None:
    assert len(sample(graph, np.array([29, 29]), 5, 0).centre) == 0
    assert len(sample(graph, np.zeros(0, dtype=np.int64), 5, 0).centre) == 0


def test_a_hub_gives_no_more_than_asked(make_graph: MakeGraph) -> None:
    graph = make_graph(5000, 2, [*((0, 0, t) for t in range(1, 5000)), (0, 1, 7)])
    ego = sample(graph, np.array([0]), 16, 0)
    assert Counter(ego.relation.tolist()) == {0: 15, 1: 1}
    assert len(set(ego.neighbour[:15].tolist())) == 15
    assert np.diff(ego.neighbour[:15]).min() > 300  # evenly spaced


@pytest.mark.parametrize("limit", [0, -1, 1 << 15])
def test_a_limit_out_of_range_is_refused(graph: KnowledgeGraph, limit: int) -> None:
    with pytest.raises(ConfigError, match=f"of {limit} edges"):
        sample(graph, np.array([0]), limit, 0)


def test_distances_from_the_start_equal_a_search_by_hand(graph: KnowledgeGraph) -> None:
    starts = torch.tensor([0, 0, 1, 3, 29, 2])
    frontier = expand(graph, Paths.starts(starts, torch.arange(6)))
    paths = frontier.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    paths = paths.select(torch.arange(0, len(paths), 3))
    frontier = expand(graph, paths)
    found = from_start(graph, frontier).tolist()
    assert set(found) == {0, 1, 2, 3}
    for edge, (path, tail) in enumerate(
        zip(frontier.edge_path.tolist(), frontier.tail.tolist(), strict=True)
    ):
        around = edges_of(graph, int(paths.entities[path, 0]))
        forwards = any(r < R and t == tail for r, t in around)
        backwards = any(r >= R and t == tail for r, t in around)
        assert found[edge] == forwards + 2 * backwards


def test_distances_of_no_edges_are_none(graph: KnowledgeGraph) -> None:
    frontier = expand(graph, Paths.starts(torch.tensor([29]), torch.tensor([0])))
    assert from_start(graph, frontier).tolist() == []
