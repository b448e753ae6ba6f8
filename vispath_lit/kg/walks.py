"""Distances in the graph, by breadth-first search over whole frontiers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.kg.csr import Ints
from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph


def hop_distance(
    graph: KnowledgeGraph,
    sources: Sequence[int] | Ints | Tensor,
    max_hops: int,
    *,
    inverse: bool = True,
    backwards: bool = False,
) -> NDArray[np.int16]:
    """`[N]`: steps from the nearest source to each entity, -1 beyond `max_hops`.

    Args:
        sources: entities at distance 0.
        inverse: triples may be walked both ways; otherwise forwards only.
        backwards: with `inverse=False`, steps from each entity to the nearest source instead.
    """
    distance = np.full(graph.num_entities, -1, dtype=np.int16)
    frontier = np.unique(np.asarray(sources, dtype=np.int64))
    distance[frontier] = 0
    for hop in range(1, max_hops + 1):
        reached = []
        if inverse or not backwards:
            reached.append(_neighbours(graph.out_indptr, graph.out_tail, frontier))
        if inverse or backwards:
            reached.append(_neighbours(graph.in_indptr, graph.in_tail, frontier))
        tails = np.concatenate(reached)
        frontier = np.unique(tails[distance[tails] < 0])
        if len(frontier) == 0:
            break
        distance[frontier] = hop
    return distance


def _neighbours(indptr: NDArray[np.int64], tail: Ints, entities: NDArray[np.int64]) -> NDArray[np.int64]:
    _, position = ranges(indptr[entities], indptr[entities + 1] - indptr[entities])
    return tail[position].astype(np.int64)
