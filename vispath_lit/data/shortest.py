"""Shortest paths of many questions at once, by searches from both ends that meet in the middle.

The smaller side of a question grows first, so that a hub on one side is not expanded where the other side
gets there with less. An entity e of question q is the key `q * N + e`, so that the frontiers of a batch are
one sorted array, and each operation is one pass of numpy over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Stored = NDArray[np.integer[Any]]
MET, UNREACHABLE, TOO_LARGE = 0, 1, 2
BLOCK = 1 << 22  # Edges looked at in one pass; a question of more is a pass of its own.


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Edges of one position in the paths of many questions, in the order of (left, relation, right).

    Attributes:
        left, right: keys of head and tail.
        relation: signed.
    """

    left: Ints
    relation: Ints
    right: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Meetings:
    """What became of B questions.

    Attributes:
        status: `[B]`, MET, UNREACHABLE or TOO_LARGE.
        hops: `[B]`, length of the shortest paths; 0 where there is none.
        edges: for each position all edges that lie on a shortest path.
    """

    status: NDArray[np.int8]
    hops: Ints
    edges: Sequence[Edges]


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Walks the edges of a graph, in one or both directions, for keys of many questions."""

    graph: KnowledgeGraph
    inverse: bool

    @property
    def size(self) -> int:
        return self.graph.num_entities

    def cost(self, keys: Ints, questions: int, *, forwards: bool) -> Ints:
        """`[questions]`: edges that `grow` or `expand` would look at for each question."""
        entities = keys % self.size
        degree = sum(indptr[entities + 1] - indptr[entities] for indptr, _, _, _ in self._tables(forwards))
        return np.bincount(keys // self.size, weights=degree, minlength=questions).astype(np.int64)

    def grow(self, keys: Ints, *, forwards: bool) -> Ints:
        """Sorted distinct keys one step on (or one step before)."""
        base = keys - keys % self.size
        found = []
        for indptr, _, tail, _ in self._tables(forwards):
            row, place = _slots(indptr, keys % self.size)
            found.append(base[row] + tail[place])
        return distinct(np.concatenate(found))

    def expand(self, keys: Ints, among: Ints, *, forwards: bool) -> Edges:
        """The edges from `keys` (or into them) whose other end is in the sorted `among`, in no order."""
        base = keys - keys % self.size
        parts = []
        for indptr, relations, tail, shift in self._tables(forwards):
            row, place = _slots(indptr, keys % self.size)
            other = base[row] + tail[place]
            keep = np.flatnonzero(within(other, among))
            row, other = row[keep], other[keep]
            parts.append((keys[row], relations[place[keep]].astype(np.int64) + shift, other))
        near, relation, far = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Edges(near, relation, far) if forwards else Edges(far, relation, near)

    def _tables(self, forwards: bool) -> list[tuple[Ints, Stored, Stored, int]]:
        """The arrays to walk by, each with what makes its relations signed ones, seen from the left."""
        graph = self.graph
        outgoing = graph.out_indptr, graph.out_relation, graph.out_tail
        incoming = graph.in_indptr, graph.in_relation, graph.in_tail
        first, second = (outgoing, incoming) if forwards else (incoming, outgoing)
        return [(*first, 0), (*second, graph.num_relations)][: 1 + self.inverse]


def meet(steps: Steps, starts: Ints, targets: Ints, d_max: int, max_edges: int) -> Meetings:
    """Searches from B starts for the sorted keys `targets` of their answers, at most `d_max` hops.

    Args:
        starts: `[B]` entities.
        max_edges: edges that growing may look at before a question is given up.
    """
    search = _Search(steps, starts, targets, d_max, max_edges)
    while len(search.front):
        search.meet()
        if len(search.front):
            search.grow()
    hops = np.where(search.status == MET, search.depth.sum(axis=0), 0)
    return Meetings(search.status, hops, _connect(steps, search, hops, d_max))


class _Search:
    """The frontiers of a batch. Side 0 holds what starts reach, side 1 what answers are reached from."""

    def __init__(self, steps: Steps, starts: Ints, targets: Ints, d_max: int, max_edges: int) -> None:
        self.steps = steps
        self.count = len(starts)
        self.d_max = d_max
        self.status = np.full(self.count, UNREACHABLE, dtype=np.int8)
        self.budget = np.full(self.count, max_edges, dtype=np.int64)
        self.depth = np.zeros((2, self.count), dtype=np.int64)
        own = np.arange(self.count) * steps.size + starts
        asked = within(np.arange(self.count), targets // steps.size)
        self.last = [own[asked], targets]
        self.levels: list[list[tuple[int, Ints]]] = [[(0, self.last[0])], [(0, self.last[1])]]
        self.middle = np.zeros(0, dtype=np.int64)

    @property
    def front(self) -> Ints:
        """Keys of the questions still searched for."""
        return self.last[0]

    def meet(self) -> None:
        """Settles the questions whose sides meet, and those that may grow no further."""
        common = self.last[0][within(self.last[0], self.last[1])]
        self.middle = np.sort(np.concatenate([self.middle, common]))
        met = np.zeros(self.count, dtype=bool)
        met[common // self.steps.size] = True
        self.status[met] = MET
        self._drop(met | (self.depth.sum(axis=0) >= self.d_max))

    def grow(self) -> None:
        """One hop on the cheaper side of each question."""
        cost = np.stack([self.steps.cost(self.last[i], self.count, forwards=not i) for i in (0, 1)])
        self.budget -= cost.min(axis=0)
        spent = (self.budget < 0) & self._open()
        self.status[spent] = TOO_LARGE
        self._drop(spent)
        side = (cost[0] > cost[1]).astype(np.int64)
        for i in (0, 1):
            chosen = (side == i)[self.last[i] // self.steps.size]
            grown = self._grown(i, self.last[i][chosen], np.where(side == i, cost[i], 0))
            self.last[i] = np.sort(np.concatenate([self.last[i][~chosen], grown]))
        self._drop(~(self._open() & self._having(self.last[1])))

    def _grown(self, i: int, keys: Ints, cost: Ints) -> Ints:
        seen = np.sort(np.concatenate([level for _, level in self.levels[i]]))
        found = [self.steps.grow(part, forwards=not i) for (part,) in _blocks(cost, self.steps.size, keys)]
        grown = np.concatenate(found) if found else keys[:0]
        grown = grown[~within(grown, seen)]
        self.depth[i, distinct(keys // self.steps.size)] += 1
        depth = self.depth[i, grown // self.steps.size]
        self.levels[i] += [(int(d), grown[depth == d]) for d in distinct(depth)]
        return grown

    def level(self, i: int, depth: Ints) -> Ints:
        """Sorted keys of side i, those of each question at its own depth; none at a negative one."""
        parts = [keys[depth[keys // self.steps.size] == at] for at, keys in self.levels[i]]
        return np.sort(np.concatenate(parts))

    def _having(self, keys: Ints) -> Bools:
        found = np.zeros(self.count, dtype=bool)
        found[keys // self.steps.size] = True
        return found

    def _open(self) -> Bools:
        return self._having(self.last[0])

    def _drop(self, settled: Bools) -> None:
        self.last = [keys[~settled[keys // self.steps.size]] for keys in self.last]


def _connect(steps: Steps, search: _Search, hops: Ints, d_max: int) -> list[Edges]:
    """The edges of each position, from the middle outwards; what leads nowhere is left out on the way."""
    met = search.status == MET
    parts: list[list[Edges]] = [[] for _ in range(d_max)]
    for i in (0, 1):
        inner = search.middle
        for away in range(1, d_max + 1):
            depth = np.where(met, search.depth[i] - away, -1)
            outer = search.level(i, depth)
            inner = inner[(depth >= 0)[inner // steps.size]]
            if not len(outer):
                break
            edges = _between(steps, search.count, *((outer, inner) if i == 0 else (inner, outer)))
            place = depth if i == 0 else hops - depth - 1
            position = place[edges.left // steps.size]
            for at in distinct(position).tolist():
                rows = position == at
                parts[at].append(Edges(edges.left[rows], edges.relation[rows], edges.right[rows]))
            inner = distinct(edges.left if i == 0 else edges.right)
    return [_ordered(found) for found in parts]


def _between(steps: Steps, count: int, left: Ints, right: Ints) -> Edges:
    """All edges from `left` to `right`, each question's from the side that has less to look at."""
    cost = [steps.cost(keys, count, forwards=forwards) for keys, forwards in ((left, True), (right, False))]
    from_left = cost[0] <= cost[1]
    found = [Edges(left[:0], left[:0], left[:0])]
    for forwards, near, far in ((True, left, right), (False, right, left)):
        mine = from_left if forwards else ~from_left
        near = near[mine[near // steps.size]]
        looked = np.where(mine, cost[0] if forwards else cost[1], 0)
        for part, other in _blocks(looked, steps.size, near, far):
            found.append(steps.expand(part, other, forwards=forwards))
    return _joined(found)


def _joined(parts: Sequence[Edges]) -> Edges:
    return Edges(*(np.concatenate([getattr(p, name) for p in parts]) for name in Edges.__slots__))


def _ordered(parts: Sequence[Edges]) -> Edges:
    none = np.zeros(0, dtype=np.int64)
    edges = _joined([Edges(none, none, none), *parts])
    order = np.lexsort((edges.right, edges.relation, edges.left))
    return Edges(edges.left[order], edges.relation[order], edges.right[order])


def _blocks(cost: Ints, size: int, *keys: Ints) -> Iterator[tuple[Ints, ...]]:
    """The sorted `keys` in runs of questions that cost at most BLOCK together; free runs are left out."""
    total = np.cumsum(cost)
    low = 0
    while low < len(cost):
        before = int(total[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(total, before + BLOCK, side="right")))
        if int(total[high - 1]) > before:
            ends = np.array([low * size, high * size])
            yield tuple(part[slice(*np.searchsorted(part, ends))] for part in keys)
        low = high


def _slots(indptr: Ints, entities: Ints) -> tuple[Ints, Ints]:
    begin = np.asarray(indptr[entities])
    return ranges(begin, np.asarray(indptr[entities + 1]) - begin)


def distinct(values: Ints) -> Ints:
    """`[m]` sorted distinct ones of `[n]` values; faster than `np.unique`, which hashes first."""
    ordered = np.sort(values)
    return ordered[np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))]


def within(values: Ints, among: Ints) -> Bools:
    """`[n]`: whether each value is one of the sorted `among`."""
    if not len(among):
        return np.zeros(len(values), dtype=bool)
    place = np.searchsorted(among, values)
    np.minimum(place, len(among) - 1, out=place)
    result: Bools = among[place] == values
    return result
