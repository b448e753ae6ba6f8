"""Weak supervision: all shortest paths between a topic and its answers, weighted by their precision.

A search from both ends meets in the middle; the smaller side grows first, so that a hub on one
side is not expanded when the other side gets there with less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph

Ints = NDArray[np.int64]
Stored = NDArray[np.integer[Any]]
Steps = list[tuple[int, int]]
_PARTIAL = 64  # partial paths kept while enumerating, times `max_paths`


@dataclass(frozen=True, slots=True)
class WeakPathFinder:
    """Finds shortest paths of at most `d_max` hops.

    Attributes:
        max_paths: paths kept, the most precise first, then in the order of their relations and tails.
        max_edges: edges looked at before a question is given up.
        inverse: a step may walk a triple backwards.
    """

    graph: KnowledgeGraph
    d_max: int
    max_paths: int
    max_edges: int
    inverse: bool

    def find(self, start: int, answers: Ints) -> list[tuple[Steps, float]] | str:
        """Paths with their precision in (0, 1], or `unreachable` or `too_large`."""
        answers = np.unique(answers[answers != start])
        levels = self._levels(start, answers) if len(answers) else "unreachable"
        if isinstance(levels, str):
            return levels
        heads, relations, tails = self._enumerate(start, levels)
        precision: dict[tuple[int, ...], float] = {}
        found = []
        for row in range(len(heads)):
            sequence = tuple(relations[row].tolist())
            if sequence not in precision:
                ends = follow(self.graph, start, sequence)
                precision[sequence] = float(np.isin(ends, answers).mean())
            found.append((list(zip(sequence, tails[row].tolist(), strict=True)), precision[sequence]))
        found.sort(key=lambda path: -path[1])
        return found[: self.max_paths]

    def _levels(self, start: int, answers: Ints) -> list[Ints] | str:
        """For each hop the sorted entities on some shortest path, from {start} to the answers met."""
        front, back = [np.array([start])], [answers]
        budget = self.max_edges
        while not len(np.intersect1d(front[-1], back[-1])):
            if len(front) + len(back) - 2 >= self.d_max:
                return "unreachable"
            cost = self._edges(front[-1], True), self._edges(back[-1], False)
            budget -= min(cost)
            if budget < 0:
                return "too_large"
            side, forwards = (front, True) if cost[0] <= cost[1] else (back, False)
            grown = np.setdiff1d(self._step(side[-1], forwards), np.concatenate(side))
            if not len(grown):
                return "unreachable"
            side.append(grown)
        middle = [np.intersect1d(front[-1], back[-1])]
        for level in reversed(front[:-1]):
            middle.insert(0, np.intersect1d(level, self._step(middle[0], False)))
        for level in reversed(back[:-1]):
            middle.append(np.intersect1d(level, self._step(middle[-1], True)))
        return middle

    def _enumerate(self, start: int, levels: list[Ints]) -> tuple[Ints, Ints, Ints]:
        """Every path through the levels, in the order of its steps; bounded while it grows."""
        ends = np.array([start])
        relations = np.zeros((1, 0), dtype=np.int64)
        tails = np.zeros((1, 0), dtype=np.int64)
        for level in levels[1:]:
            row, relation, tail = self._expand(ends)
            keep = np.isin(tail, level)
            row, relation, tail = row[keep], relation[keep], tail[keep]
            limit = slice(0, self.max_paths * _PARTIAL)
            row, relation, tail = row[limit], relation[limit], tail[limit]
            relations = np.concatenate([relations[row], relation[:, None]], axis=1)
            tails = np.concatenate([tails[row], tail[:, None]], axis=1)
            ends = tail
        return ends, relations, tails

    def _expand(self, entities: Ints) -> tuple[Ints, Ints, Ints]:
        """(row, signed relation, tail) of each edge that leaves an entity, by row."""
        graph = self.graph
        row, place = _slots(graph.out_indptr, entities)
        relation, tail = graph.out_relation[place].astype(np.int64), graph.out_tail[place].astype(np.int64)
        if not self.inverse:
            return row, relation, tail
        back_row, place = _slots(graph.in_indptr, entities)
        row = np.concatenate([row, back_row])
        relation = np.concatenate([relation, graph.in_relation[place].astype(np.int64) + graph.num_relations])
        tail = np.concatenate([tail, graph.in_tail[place].astype(np.int64)])
        order = np.argsort(row, kind="stable")
        return row[order], relation[order], tail[order]

    def _step(self, entities: Ints, forwards: bool) -> Ints:
        """Sorted distinct entities one step on (or one step before, where a step has a direction)."""
        tables = self._tables(forwards)
        return np.unique(
            np.concatenate([tail[_slots(indptr, entities)[1]] for indptr, tail in tables])
        ).astype(np.int64)

    def _edges(self, entities: Ints, forwards: bool) -> int:
        """Edges that `_step` would look at."""
        return sum(
            int((indptr[entities + 1] - indptr[entities]).sum()) for indptr, _ in self._tables(forwards)
        )

    def _tables(self, forwards: bool) -> list[tuple[Ints, Stored]]:
        graph = self.graph
        outgoing, incoming = (graph.out_indptr, graph.out_tail), (graph.in_indptr, graph.in_tail)
        if self.inverse:
            return [outgoing, incoming]
        return [outgoing if forwards else incoming]


def _slots(indptr: Ints, entities: Ints) -> tuple[Ints, Ints]:
    """(row, place) of every slot of the given rows of a CSR array, one row behind the other."""
    begin = np.asarray(indptr[entities])
    count = np.asarray(indptr[entities + 1]) - begin
    row = np.repeat(np.arange(len(entities)), count)
    place = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + np.repeat(begin, count)
    return row, place
