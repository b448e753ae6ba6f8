from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import ConfigError, UnknownEntityError
from vispath_lit.kg.frontier import expand, follow, leaving
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Frontier, Paths

N, R = 6, 3
Triple = tuple[int, int, int]
MakeGraph = Callable[[int, int, Iterable[Triple]], KnowledgeGraph]
TRIPLES = st.lists(
    st.tuples(st.integers(0, N - 1), st.integers(0, R - 1), st.integers(0, N - 1)), min_size=1, max_size=40
)
quick = settings(max_examples=40, deadline=None)


def slow_edges(triples: set[Triple], entity: int, inverse: bool) -> list[tuple[int, int]]:
    """(signed relation, tail), forward ones first."""
    forward = sorted((r, t) for h, r, t in triples if h == entity)
    return forward + sorted((r + R, h) for h, r, t in triples if t == entity and inverse)


def slow_cap(edges: list[tuple[int, int]], cap: int) -> list[tuple[int, int]]:
    """Deals the edges of one direction out by relation, round after round, until `cap` are dealt."""
    piles = [list(pile) for _, pile in groupby(edges, key=lambda edge: edge[0])]
    dealt: list[tuple[int, int]] = []
    while len(dealt) < cap and any(piles):
        for pile in piles:
            if pile and len(dealt) < cap:
                dealt.append(pile.pop(0))
    return sorted(dealt)


def slow_expand(
    triples: set[Triple], paths: Paths, inverse: bool, cap: int | None, backtrack: bool
) -> list[tuple[int, int, int]]:
    result = []
    for p, path in enumerate(paths.records()):
        edges = slow_edges(triples, path.end, inverse)
        if not backtrack and path.relations:
            a, r, b = path.entities[-2], path.relations[-1], path.end
            walked = (a, r, b) if r < R else (b, r - R, a)
            stored = [(b, s, t) if s < R else (t, s - R, b) for s, t in edges]
            edges = [edge for edge, triple in zip(edges, stored, strict=True) if triple != walked]
        for direction in (False, True):
            side = [edge for edge in edges if (edge[0] >= R) == direction]
            result += [(p, s, t) for s, t in (side if cap is None else slow_cap(side, cap))]
    return result


def listed(frontier: Frontier) -> list[tuple[int, int, int]]:
    columns = (frontier.edge_path.tolist(), frontier.relation.tolist(), frontier.tail.tolist())
    return list(zip(*columns, strict=True))


def starts(entities: list[int]) -> Paths:
    return Paths.starts(torch.tensor(entities, dtype=torch.long), torch.arange(len(entities)))


@quick
@given(
    triples=TRIPLES,
    entities=st.lists(st.integers(0, N - 1), max_size=4),
    inverse=st.booleans(),
    cap=st.none() | st.integers(1, 5),
    backtrack=st.booleans(),
)
def test_expand_equals_the_slow_definition(
    make_graph: MakeGraph,
    triples: list[Triple],
    entities: list[int],
    inverse: bool,
    cap: int | None,
    backtrack: bool,
) -> None:
    graph = make_graph(N, R, triples)
    paths = starts(entities)
    for _ in range(2):
        frontier = expand(graph, paths, inverse=inverse, hub_cap=cap, backtrack=backtrack)
        assert listed(frontier) == slow_expand(set(triples), paths, inverse, cap, backtrack)
        assert frontier.paths is paths
        assert {t.dtype for t in (frontier.edge_path, frontier.relation, frontier.tail)} == {torch.int64}
        paths = paths.extend(frontier.edge_path, frontier.relation, frontier.tail)


@quick
@given(triples=TRIPLES, start=st.integers(0, N - 1), walk=st.lists(st.integers(0, 2 * R - 1), max_size=3))
def test_follow_equals_the_slow_definition(
    make_graph: MakeGraph, triples: list[Triple], start: int, walk: list[int]
) -> None:
    graph = make_graph(N, R, triples)
    reached = {start}
    for signed in walk:
        reached = {t for e in reached for s, t in slow_edges(set(triples), e, True) if s == signed}
    assert follow(graph, start, walk).tolist() == sorted(reached)


def test_a_cap_is_shared_among_relations(make_graph: MakeGraph) -> None:
    hub = [(0, 0, t) for t in range(1, 60)] + [(0, 1, 60), (0, 2, 61), (0, 2, 62)]
    frontier = expand(make_graph(63, 3, hub), starts([0]), hub_cap=6)
    assert listed(frontier) == [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 60), (0, 2, 61), (0, 2, 62)]


def test_parallel_edges_survive_the_ban_on_steps_back(make_graph: MakeGraph) -> None:
    graph = make_graph(2, 2, [(0, 0, 1), (0, 1, 1)])
    first = expand(graph, starts([0]))
    paths = first.paths.extend(first.edge_path, first.relation, first.tail)
    assert listed(expand(graph, paths, backtrack=False)) == [(0, 3, 0), (1, 2, 0)]


def test_no_paths_and_isolated_entities_have_no_edges(toy_graph: KnowledgeGraph) -> None:
    assert len(expand(toy_graph, starts([]))) == 0
    assert len(expand(toy_graph, starts([toy_graph.entity_index("lone")]), hub_cap=1, backtrack=False)) == 0


@pytest.mark.parametrize(("start", "walk"), [(-1, []), (12, []), (0, [14]), (0, [-1])])
def test_follow_stays_inside_the_graph(toy_graph: KnowledgeGraph, start: int, walk: list[int]) -> None:
    with pytest.raises(UnknownEntityError, match="12 entities and 14 signed relations"):
        follow(toy_graph, start, walk)


@pytest.mark.parametrize("cap", [0, -1])
def test_a_cap_below_one_is_refused(toy_graph: KnowledgeGraph, cap: int) -> None:
    with pytest.raises(ConfigError, match=f"hub_cap is {cap}"):
        expand(toy_graph, starts([0]), hub_cap=cap)


@quick
@given(triples=TRIPLES)
def test_the_relations_that_leave_an_entity(make_graph: MakeGraph, triples: list[Triple]) -> None:
    graph = make_graph(N, R, triples)
    for entity in range(N):
        assert leaving(graph, entity) == sorted({r for r, _ in slow_edges(set(triples), entity, True)})
