"""How many entities relation sequences reach, for many starts and sequences at once.

The sequences of a batch form a forest: a node is a prefix of relations from a start, and holds the set of
entities that it reaches. Prefixes that reach one entity only, the same one, are one set (many questions about
a city go through its country), so that what follows is walked once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.shortest import BLOCK
from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Small = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """U sets of entities, one behind the other.

    Attributes:
        indptr: `[U + 1]`.
        members: distinct entities of each set.
        least: `[U]`; above 0, the set was too large to be kept: it is empty here, and whatever is reached
            through it is taken to be so many.
    """

    indptr: Ints
    members: Small
    least: Ints

    @property
    def sizes(self) -> Ints:
        return np.diff(self.indptr)


class Endpoints:
    """Counts what relation sequences reach.

    Args:
        max_edges: a set of more edges into it is not kept; it counts with all its edges, as if they led to
            distinct entities.
    """

    def __init__(self, graph: KnowledgeGraph, max_edges: int) -> None:
        self.graph = graph
        self.max_edges = max_edges

    def count(self, starts: Ints, sequences: Ints) -> Ints:
        """`[n]`: distinct ends of the walks from `[n]` starts along `[n, L]` signed relations, L >= 1."""
        entities, of_row = np.unique(starts, return_inverse=True)
        sets = Sets(np.arange(len(entities) + 1), entities.astype(np.int32), np.zeros_like(entities))
        signed = 2 * self.graph.num_relations
        for step in range(sequences.shape[1]):
            pair, of_row = np.unique(of_row * signed + sequences[:, step], return_inverse=True)
            if step == sequences.shape[1] - 1:
                return self._sizes(sets, pair // signed, pair % signed)[of_row]
            sets, of_pair = _merged(self._step(sets, pair // signed, pair % signed))
            of_row = of_pair[of_row]
        raise ValueError("a sequence needs at least one relation")

    def _step(self, sets: Sets, owner: Ints, relation: Ints) -> Sets:
        """The set reached from set `owner[i]` by `relation[i]`, for each i."""
        sizes, least = np.zeros(len(owner), dtype=np.int64), sets.least[owner].copy()
        members = [np.zeros(0, dtype=np.int32)]
        for pairs, low, count, of_pair in self._rows(sets, owner, relation):
            total = np.bincount(of_pair, weights=count, minlength=len(pairs)).astype(np.int64)
            large = total > self.max_edges
            least[pairs[large]] = total[large]
            keep = np.flatnonzero(~large[of_pair])
            for chunk in _chunks(count[keep], of_pair[keep]):
                rows = keep[chunk]
                found, whose = self._tails(relation[pairs], low[rows], count[rows], of_pair[rows])
                sizes[pairs] += np.bincount(whose, minlength=len(pairs))
                members.append(found)
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        return Sets(indptr, np.concatenate(members), least)

    def _sizes(self, sets: Sets, owner: Ints, relation: Ints) -> Ints:
        """The sizes of the same sets; ends that are distinct anyway are not looked at."""
        sizes = sets.least[owner].copy()
        apart = self._injective[relation] | (sets.sizes[owner] == 1)
        for pairs, low, count, of_pair in self._rows(sets, owner, relation):
            total = np.bincount(of_pair, weights=count, minlength=len(pairs)).astype(np.int64)
            done = apart[pairs] | (total > self.max_edges)
            sizes[pairs[done]] += total[done]
            keep = np.flatnonzero(~done[of_pair])
            for chunk in _chunks(count[keep], of_pair[keep]):
                rows = keep[chunk]
                _, whose = self._tails(relation[pairs], low[rows], count[rows], of_pair[rows])
                sizes[pairs] += np.bincount(whose, minlength=len(pairs))
        return sizes

    def _rows(self, sets: Sets, owner: Ints, relation: Ints) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
        """Blocks of (pairs, first edge, edges, position of its pair) of the members' edges by it."""
        sizes = sets.sizes[owner]
        for chunk in _chunks(sizes, np.arange(len(owner))):
            of_pair, place = ranges(sets.indptr[owner[chunk]], sizes[chunk])
            low, count = self._lookup(sets.members[place].astype(np.int64), relation[chunk][of_pair])
            yield chunk, low, count, of_pair

    def _tails(self, relation: Ints, low: Ints, count: Ints, of_pair: Ints) -> tuple[Small, Ints]:
        """The distinct entities at the given edges, by pair, and the pair of each."""
        size = self.graph.num_entities
        row, place = ranges(low, count)
        whose = of_pair[row]
        backwards = (relation >= self.graph.num_relations)[whose]
        tail = np.empty(len(place), dtype=np.int64)
        tail[~backwards] = self.graph.out_tail[place[~backwards]]
        tail[backwards] = self.graph.in_tail[place[backwards]]
        key = np.sort(whose * size + tail)
        key = key[np.flatnonzero(np.diff(key, prepend=-1))]
        return (key % size).astype(np.int32), key // size

    def _lookup(self, entities: Ints, signed: Ints) -> tuple[Ints, Ints]:
        """Where the edges of each (entity, signed relation) begin, and how many they are."""
        key = entities * self.graph.num_relations + signed % self.graph.num_relations
        backwards = signed >= self.graph.num_relations
        low, count = np.zeros_like(key), np.zeros_like(key)
        for side in (0, 1):
            rows = np.flatnonzero(backwards == bool(side))
            keys, first = self._index[side]
            if not len(rows) or not len(keys):
                continue
            place = np.minimum(np.searchsorted(keys, key[rows]), len(keys) - 1)
            hit = keys[place] == key[rows]
            low[rows] = first[place]
            count[rows] = np.where(hit, first[place + 1] - first[place], 0)
        return low, count

    @cached_property
    def _index(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """For each direction the sorted (entity, relation) keys that have edges, and where these begin."""
        graph = self.graph
        return (
            _groups(graph.out_indptr, graph.out_relation, graph.num_relations),
            _groups(graph.in_indptr, graph.in_relation, graph.num_relations),
        )

    @cached_property
    def _injective(self) -> Bools:
        """`[2R]`: whether no two entities have the same tail by a signed relation."""
        found = []
        for keys, first in (self._index[1], self._index[0]):
            shared = np.zeros(self.graph.num_relations, dtype=bool)
            shared[keys[np.diff(first) > 1] % self.graph.num_relations] = True
            found.append(~shared)
        return np.concatenate(found)


def _groups(indptr: Ints, relation: NDArray[np.integer[Any]], relations: int) -> tuple[Ints, Ints]:
    head = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    head *= relations
    head += relation
    first = np.flatnonzero(np.diff(head, prepend=-1))
    return head[first], np.append(first, len(head))


def _merged(sets: Sets) -> tuple[Sets, Ints]:
    """Sets of one and the same entity become one; also where each set went."""
    sizes = sets.sizes
    single = sizes == 1
    name = np.where(single, 0, -1 - np.arange(len(sizes)))
    name[single] = sets.members[sets.indptr[:-1][single]]
    _, chosen, place = np.unique(name, return_index=True, return_inverse=True)
    _, rows = ranges(sets.indptr[chosen], sizes[chosen])
    indptr = np.concatenate([[0], np.cumsum(sizes[chosen])])
    return Sets(indptr, sets.members[rows], sets.least[chosen]), place


def _chunks(cost: Ints, group: Ints) -> Iterator[Ints]:
    """Rows in runs that cost at most BLOCK together and do not part a group; `group` is non-decreasing."""
    total = np.cumsum(cost)
    low = 0
    while low < len(cost):
        before = int(total[low - 1]) if low else 0
        high = int(np.searchsorted(total, before + BLOCK, side="right"))
        if high < len(cost):
            begin = int(np.searchsorted(group, group[high], side="left"))
            high = begin if begin > low else int(np.searchsorted(group, group[high], side="right"))
        yield np.arange(low, high)
        low = high
