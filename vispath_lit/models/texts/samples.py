"""Edges and chains to distil text composers on, drawn as a search would meet them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from vispath_lit.kg.csr import Ints
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Paths

Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The edges of each entity in one direction, grouped by relation.

    Attributes:
        indptr: `[N + 1]`, the runs of each entity.
        start, length: `[runs]`, the edges of each run.
    """

    indptr: Index
    start: Index
    length: Index
    relation: Ints
    tail: Ints

    @classmethod
    def of(cls, indptr: Index, relation: Ints, tail: Ints) -> Runs:
        first = np.ones(len(relation), dtype=bool)
        first[1:] = relation[1:] != relation[:-1]
        first[indptr[:-1][np.diff(indptr) > 0]] = True
        start = np.flatnonzero(first)
        length = np.diff(start, append=len(relation))
        return cls(np.searchsorted(start, indptr), start, length, relation, tail)


class WalkSampler:
    """Random walks in both directions: a relation of the endpoint first, then one of its edges.

    Drawing the relation first keeps hubs from filling every walk with the edges of their largest relation.
    """

    def __init__(self, graph: KnowledgeGraph, seed: int) -> None:
        self.relations = graph.num_relations
        self.rng = np.random.default_rng(seed)
        self.sides = (
            Runs.of(graph.out_indptr, graph.out_relation, graph.out_tail),
            Runs.of(graph.in_indptr, graph.in_relation, graph.in_tail),
        )

    def step(self, ends: Index) -> tuple[Index, Index]:
        """A signed relation and a tail for each of `[n]` endpoints that have an edge."""
        counts = np.stack([side.indptr[ends + 1] - side.indptr[ends] for side in self.sides])
        pick = self.rng.integers(counts.sum(0))
        backwards = pick >= counts[0]
        relation, tail = np.empty_like(ends), np.empty_like(ends)
        for sign, side in enumerate(self.sides):
            rows = np.flatnonzero(backwards == bool(sign))
            run = side.indptr[ends[rows]] + pick[rows] - sign * counts[0, rows]
            edge = side.start[run] + self.rng.integers(side.length[run])
            relation[rows] = side.relation[edge].astype(np.int64) + sign * self.relations
            tail[rows] = side.tail[edge]
        return relation, tail

    def walks(self, starts: Index, hops: int) -> Paths:
        """One walk of `hops` steps from each start; a start needs an edge."""
        entities, relations = [starts], []
        for _ in range(hops):
            relation, tail = self.step(entities[-1])
            relations.append(relation)
            entities.append(tail)
        return Paths(
            torch.from_numpy(np.stack(entities, axis=1)),
            torch.from_numpy(np.stack(relations, axis=1)),
            torch.arange(len(starts)),
            torch.zeros(len(starts)),
        )


def sample_pairs(graph: KnowledgeGraph, count: int, seed: int) -> tuple[Index, Index]:
    """At most `count` distinct (signed relation, tail) pairs, in random order.

    Half of the draws are edges of the graph, half are steps from a random entity, where rare relations count
    as much as frequent ones.
    """
    rng = np.random.default_rng(seed)
    triples = rng.integers(graph.num_triples, size=count)
    backwards = rng.random(count) < 0.5
    uniform = np.where(
        backwards,
        _pair(
            graph, graph.in_relation[triples].astype(np.int64) + graph.num_relations, graph.in_tail[triples]
        ),
        _pair(graph, graph.out_relation[triples].astype(np.int64), graph.out_tail[triples]),
    )
    relation, tail = WalkSampler(graph, seed).step(random_starts(graph, count, rng))
    mixed = np.stack([uniform, _pair(graph, relation, tail)], axis=1).ravel()
    _, first = np.unique(mixed, return_index=True)
    pairs = mixed[np.sort(first)[:count]]
    return pairs % (2 * graph.num_relations), pairs // (2 * graph.num_relations)


def random_starts(graph: KnowledgeGraph, count: int, rng: np.random.Generator) -> Index:
    """`[count]` entities that have an edge."""
    connected = np.flatnonzero(graph.degrees() > 0)
    return connected[rng.integers(len(connected), size=count)]


def _pair(graph: KnowledgeGraph, relation: Index, tail: Ints) -> Index:
    return tail.astype(np.int64) * (2 * graph.num_relations) + relation
