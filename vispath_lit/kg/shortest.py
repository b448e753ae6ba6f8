"""All shortest walks between two entities, whichever way their triples point."""

from __future__ import annotations

from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Path

Ints = NDArray[np.int64]


def distances(graph: KnowledgeGraph, start: int, most: int, until: int | None = None) -> NDArray[np.int16]:
    """`[N]`: hops from `start` to each entity, both ways round; -1 where there are more than `most`.

    Args:
        until: no further than to this entity; what is further away stays -1.
    """
    found = np.full(graph.num_entities, -1, dtype=np.int16)
    found[start] = 0
    layer = np.array([start], dtype=np.int64)
    for hop in range(1, most + 1):
        reached = _neighbours(graph, layer)
        layer = reached[found[reached] < 0]
        found[layer] = hop
        if not len(layer) or (until is not None and found[until] >= 0):
            break
    return found


def shortest_paths(graph: KnowledgeGraph, start: int, end: int, most_hops: int, limit: int) -> list[Path]:
    """The first `limit` shortest paths of at most `most_hops` hops, in the order of the graph.

    Parallel edges are paths of their own. None where the two are one entity or too far apart.
    """
    if start == end:
        return []
    near = distances(graph, end, most_hops, until=start)
    if near[start] < 0:
        return []
    paths = [Path((start,), ())]
    for left in range(int(near[start]) - 1, -1, -1):
        paths = list(islice((longer for path in paths for longer in _steps(graph, path, near, left)), limit))
    return paths


def _steps(graph: KnowledgeGraph, path: Path, near: NDArray[np.int16], left: int) -> list[Path]:
    """The path with each edge that leads to an entity `left` hops away from the goal."""
    made: list[Path] = []
    tables = (
        (graph.out_indptr, graph.out_relation, graph.out_tail, 0),
        (graph.in_indptr, graph.in_relation, graph.in_tail, graph.num_relations),
    )
    for indptr, relation, tail, shift in tables:
        row = slice(int(indptr[path.end]), int(indptr[path.end + 1]))
        tails = tail[row].astype(np.int64)
        for place in np.flatnonzero(near[tails] == left).tolist():
            signed = int(relation[row][place]) + shift
            made.append(Path((*path.entities, int(tails[place])), (*path.relations, signed)))
    return made


def _neighbours(graph: KnowledgeGraph, entities: Ints) -> Ints:
    """Sorted distinct entities one triple away."""
    found = []
    for indptr, tail in ((graph.out_indptr, graph.out_tail), (graph.in_indptr, graph.in_tail)):
        low = np.asarray(indptr[entities])
        _, place = ranges(low, np.asarray(indptr[entities + 1]) - low)
        found.append(tail[place].astype(np.int64))
    return np.unique(np.concatenate(found))
