"""Weak supervision: all shortest paths between a topic and its answers, weighted by their precision.

Batches of questions are searched at once (`data/shortest.py`), as one question is too little work for numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.endpoints import Endpoints
from vispath_lit.data.shortest import MET, TOO_LARGE, Edges, Meetings, Steps, distinct, meet
from vispath_lit.kg.frontier import follow, ranges
from vispath_lit.kg.store import KnowledgeGraph

Ints = NDArray[np.int64]
Found = list[tuple[list[tuple[int, int]], float]]
_PARTIAL = 64  # partial paths kept while enumerating, times `max_paths`
_KEYS = 1 << 24  # entities times questions of a batch


@dataclass(frozen=True, eq=False)
class WeakPathFinder:
    """Finds shortest paths of at most `d_max` hops.

    Attributes:
        max_paths: paths kept, the most precise first, then in the order of their relations and tails.
        max_edges: edges looked at before a question is given up; a relation sequence that leads over more is
            weighed as if they all led to distinct entities.
        inverse: a step may walk a triple backwards.
    """

    graph: KnowledgeGraph
    d_max: int
    max_paths: int
    max_edges: int
    inverse: bool

    @property
    def batch(self) -> int:
        """Questions that are best searched at once: fewer on a large graph, where each is more work."""
        return min(max(_KEYS // max(self.graph.num_entities, 1), 8), 256)

    def find(self, start: int, answers: Ints) -> Found | str:
        """Paths to `[n]` answers, each with its precision in (0, 1], or `unreachable` or `too_large`."""
        return self.find_all([(start, answers)])[0]

    def find_all(self, asked: Sequence[tuple[int, Ints]]) -> list[Found | str]:
        """The same for (start, answers) of many questions, in order; the batch changes no result."""
        return [
            one
            for first in range(0, len(asked), self.batch)
            for one in self._find_batch(asked[first : first + self.batch])
        ]

    def _find_batch(self, asked: Sequence[tuple[int, Ints]]) -> Iterator[Found | str]:
        size = self.graph.num_entities
        starts = np.array([start for start, _ in asked], dtype=np.int64)
        targets = [
            i * size + np.asarray(answers, dtype=np.int64)[np.asarray(answers) != start]
            for i, (start, answers) in enumerate(asked)
        ]
        steps = Steps(self.graph, self.inverse)
        met = meet(steps, starts, distinct(np.concatenate(targets)), self.d_max, self.max_edges)
        found: dict[int, Found] = {}
        for length in distinct(met.hops[met.hops > 0]).tolist():
            found |= self._paths(met, length, starts, targets)
        for i, status in enumerate(met.status.tolist()):
            yield found[i] if status == MET else "too_large" if status == TOO_LARGE else "unreachable"

    def _paths(self, met: Meetings, length: int, starts: Ints, targets: Sequence[Ints]) -> dict[int, Found]:
        """All paths of the questions whose shortest ones have this length."""
        asked = np.flatnonzero(met.hops == length)
        question, relations, tails, cut = _enumerate(
            met.edges[:length], asked, starts, self.graph.num_entities, self.max_paths * _PARTIAL
        )
        precision = self._precision(question, relations, tails, starts)
        for one in np.flatnonzero(cut).tolist():  # Rare: not all walks to an answer are among the rows.
            rows = np.flatnonzero(question == one)
            precision[rows] = self._one_by_one(int(starts[one]), relations[rows], targets[one])
        order = np.lexsort((np.arange(len(question)), -precision, question))
        first = np.searchsorted(question, asked)
        count = np.searchsorted(question, asked, side="right") - first
        found: dict[int, Found] = {}
        for one, begin, many in zip(asked.tolist(), first.tolist(), count.tolist(), strict=True):
            rows = order[begin : begin + min(many, self.max_paths)]
            walks = zip(relations[rows].tolist(), tails[rows].tolist(), precision[rows].tolist(), strict=True)
            found[one] = [(list(zip(r, t, strict=True)), weight) for r, t, weight in walks]
        return found

    def _precision(self, question: Ints, relations: Ints, tails: Ints, starts: Ints) -> NDArray[np.float64]:
        """Of each row: ends that are answers / ends of all walks of its relations from its start."""
        sequence = _sequences(question, relations)
        _, chosen = np.unique(sequence, return_index=True)
        reached = self._endpoints.count(starts[question[chosen]], relations[chosen])
        size = self.graph.num_entities
        pairs = distinct(sequence * size + tails[:, -1])
        hits = np.bincount(pairs // size, minlength=len(chosen))
        result: NDArray[np.float64] = (hits / np.maximum(reached, 1))[sequence]
        return result

    def _one_by_one(self, start: int, relations: Ints, targets: Ints) -> NDArray[np.float64]:
        answers = targets % self.graph.num_entities
        known: dict[tuple[int, ...], float] = {}
        for sequence in map(tuple, relations.tolist()):
            if sequence not in known:
                known[sequence] = float(np.isin(follow(self.graph, start, sequence), answers).mean())
        return np.array([known[tuple(row)] for row in relations.tolist()])

    @cached_property
    def _endpoints(self) -> Endpoints:
        return Endpoints(self.graph, self.max_edges)


def _enumerate(
    edges: Sequence[Edges], asked: Ints, starts: Ints, size: int, limit: int
) -> tuple[Ints, Ints, Ints, NDArray[np.bool_]]:
    """Every path, by question and in the order of its steps: (question, relations, tails, questions cut).

    A question has at most `limit` rows at any length; more are cut.
    """
    question = asked
    here = asked * size + starts[asked]
    relations = np.zeros((len(asked), 0), dtype=np.int64)
    tails = np.zeros((len(asked), 0), dtype=np.int64)
    cut = np.zeros(len(starts), dtype=bool)
    for level in edges:
        first = np.searchsorted(level.left, here)
        count = np.searchsorted(level.left, here, side="right") - first
        before = np.cumsum(count) - count
        before -= before[np.searchsorted(question, question)]
        kept = np.clip(limit - before, 0, count)
        cut[question[kept < count]] = True
        row, place = ranges(first, kept)
        question, here = question[row], level.right[place]
        relations = np.concatenate([relations[row], level.relation[place, None]], axis=1)
        tails = np.concatenate([tails[row], here[:, None] % size], axis=1)
    return question, relations, tails, cut


def _sequences(question: Ints, relations: Ints) -> Ints:
    """`[n]`: the number of each row's (question, relation sequence), counted from 0."""
    number = question
    for step in range(relations.shape[1]):
        column = relations[:, step]
        key = number * (int(column.max(initial=0)) + 1) + column
        number = np.unique(key, return_inverse=True)[1]
    return number
