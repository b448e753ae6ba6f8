"""The edges that leave a set of paths: the one definition of the candidate set (DESIGN section 6).

Search and training both expand with these functions. All is vectorised over edges.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vispath_lit.errors import ConfigError, UnknownEntityError
from vispath_lit.kg.csr import Ints
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Frontier, Paths

log = logging.getLogger(__name__)
FEW_ROWS = 8  # Up to so many rows are searched one by one.


def expand(
    graph: KnowledgeGraph,
    paths: Paths,
    *,
    inverse: bool = True,
    hub_cap: int | None = None,
    backtrack: bool = True,
) -> Frontier:
    """All edges of each path's endpoint.

    Edges are ordered by path, then forward before inverse, then by relation and tail.

    Args:
        paths: P paths of any length.
        inverse: also walk triples backwards (signed relation r + R).
        hub_cap: at most this many edges a path and direction, shared fairly among the relations: the first
            tail of each relation, then the second of each, and so on.
        backtrack: False drops the step back over the stored triple that the path has just come by.

    Raises:
        ConfigError: a `hub_cap` below 1.
    """
    if hub_cap is not None and hub_cap < 1:
        raise ConfigError(f"hub_cap is {hub_cap}; expected at least 1, or null for no cap")
    ends = paths.ends.cpu().numpy()
    segment, relation, tail = _edges(graph, ends, inverse)
    keep: NDArray[np.bool_] | None = None
    if not backtrack and paths.length > 0:
        keep = ~_returns(graph, paths, segment // 2, relation, tail)
        segment, relation, tail = segment[keep], relation[keep], tail[keep]
    if hub_cap is not None:
        keep = _within_cap(segment, relation, 2 * len(ends), hub_cap)
        if (cut := len(keep) - int(keep.sum())) > 0:
            hubs = int((np.bincount(segment) > hub_cap).sum())
            log.debug("hub_cap=%d left out %d of %d edges at %d hubs", hub_cap, cut, len(keep), hubs)
            segment, relation, tail = segment[keep], relation[keep], tail[keep]
    device = paths.entities.device
    return Frontier(
        paths,
        torch.from_numpy(segment // 2).to(device),
        torch.from_numpy(relation).to(device),
        torch.from_numpy(tail).to(device),
    )


def follow(graph: KnowledgeGraph, start: int, relations: Sequence[int]) -> NDArray[np.int64]:
    """`[n]`: the sorted distinct endpoints of every walk from `start` along a sequence of signed relations.

    Raises:
        UnknownEntityError: an index outside the graph.
    """
    if not 0 <= start < graph.num_entities or not all(0 <= r < 2 * graph.num_relations for r in relations):
        raise UnknownEntityError(
            f"start {start} or relations {list(relations)} lie outside the graph: it has "
            f"{graph.num_entities} entities and {2 * graph.num_relations} signed relations"
        )
    reached = np.array([start], dtype=np.int64)
    for signed in relations:
        backwards = signed >= graph.num_relations
        indptr, relation, tail = _direction(graph, backwards)
        low, high = _relation_rows(indptr, relation, reached, int(signed) - backwards * graph.num_relations)
        _, position = ranges(low, high - low)
        reached = np.unique(tail[position].astype(np.int64))
    return reached


def leaving(graph: KnowledgeGraph, entity: int) -> list[int]:
    """The distinct signed relations of an entity's edges, ascending: forward ones first."""
    found: list[int] = []
    for backwards in (False, True):
        indptr, relation, _ = _direction(graph, backwards)
        of_entity = np.unique(relation[indptr[entity] : indptr[entity + 1]]).astype(np.int64)
        found += (of_entity + backwards * graph.num_relations).tolist()
    return found


def ranges(
    starts: NDArray[np.int64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Concatenates `starts[i] + arange(counts[i])`.

    Returns:
        The owner i of each element and the elements, both `[sum(counts)]`.
    """
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    first = np.cumsum(counts) - counts
    return owner, np.arange(len(owner), dtype=np.int64) + np.repeat(starts - first, counts)


def _direction(graph: KnowledgeGraph, backwards: bool) -> tuple[NDArray[np.int64], Ints, Ints]:
    if backwards:
        return graph.in_indptr, graph.in_relation, graph.in_tail
    return graph.out_indptr, graph.out_relation, graph.out_tail


def _edges(
    graph: KnowledgeGraph, ends: NDArray[np.int64], inverse: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Segment (2 * path, + 1 for inverse edges), signed relation and tail of each edge, in order."""
    starts = np.zeros((len(ends), 2), dtype=np.int64)
    counts = np.zeros((len(ends), 2), dtype=np.int64)
    for side, indptr in enumerate((graph.out_indptr, graph.in_indptr)[: 1 + inverse]):
        starts[:, side] = indptr[ends]
        counts[:, side] = indptr[ends + 1] - starts[:, side]
    segment, position = ranges(starts.ravel(), counts.ravel())
    relation = np.empty(len(segment), dtype=np.int64)
    tail = np.empty(len(segment), dtype=np.int64)
    backwards = (segment & 1).astype(bool)
    for side in range(1 + inverse):
        rows = np.flatnonzero(backwards == bool(side))
        _, relations, tails = _direction(graph, bool(side))
        relation[rows] = relations[position[rows]]
        relation[rows] += side * graph.num_relations
        tail[rows] = tails[position[rows]]
    return segment, relation, tail


def _returns(
    graph: KnowledgeGraph,
    paths: Paths,
    path: NDArray[np.int64],
    relation: NDArray[np.int64],
    tail: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """`[E]`: whether an edge is the triple of its path's last step (either way round on a self loop)."""
    last = paths.relations[:, -1].cpu().numpy()
    previous = paths.entities[:, -2].cpu().numpy()
    loop = previous == paths.ends.cpu().numpy()
    flipped = (last + graph.num_relations) % (2 * graph.num_relations)
    same = (relation == flipped[path]) | (loop[path] & (relation == last[path]))
    result: NDArray[np.bool_] = same & (tail == previous[path])
    return result


def _within_cap(
    segment: NDArray[np.int64], relation: NDArray[np.int64], segments: int, cap: int
) -> NDArray[np.bool_]:
    """`[E]`: the edges that a fair share of `cap` among the relations of each segment keeps."""
    keep = np.ones(len(segment), dtype=bool)
    rows = np.flatnonzero((np.bincount(segment, minlength=segments) > cap)[segment])
    if len(rows) == 0:
        return keep
    owner, group = segment[rows], relation[rows]
    turn = _position_in_run((np.diff(owner, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0))
    order = np.lexsort((group, turn, owner))  # No ties: a turn occurs once in a group.
    place = _position_in_run(np.diff(owner[order], prepend=-1) != 0)
    keep[rows[order[place >= cap]]] = False
    return keep


def _position_in_run(first: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Position of each element in its run; `first` marks where runs begin."""
    index = np.arange(len(first), dtype=np.int64)
    return index - np.maximum.accumulate(np.where(first, index, 0))


def _relation_rows(
    indptr: NDArray[np.int64], relation: Ints, entities: NDArray[np.int64], wanted: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where the edges of relation `wanted` begin and end in each row, by bisection in all rows at once."""
    start, stop = indptr[entities], indptr[entities + 1]
    if len(entities) <= FEW_ROWS:
        value = relation.dtype.type(wanted)
        rows = [relation[low:high] for low, high in zip(start.tolist(), stop.tolist(), strict=True)]
        begin = np.array([np.searchsorted(row, value, "left") for row in rows], dtype=np.int64)
        end = np.array([np.searchsorted(row, value, "right") for row in rows], dtype=np.int64)
        return start + begin, start + end
    return _bisect(relation, start, stop, wanted), _bisect(relation, start, stop, wanted + 1)


def _bisect(values: Ints, low: NDArray[np.int64], high: NDArray[np.int64], wanted: int) -> NDArray[np.int64]:
    """The first position in each `[low, high)` whose value is not below `wanted`."""
    low, high = low.copy(), high.copy()
    while (open_rows := np.flatnonzero(low < high)).size:
        middle = (low[open_rows] + high[open_rows]) >> 1
        below = values[middle] < wanted
        low[open_rows[below]] = middle[below] + 1
        high[open_rows[~below]] = middle[~below]
    return low
