"""Sampled ego-graphs: some edges of each entity, of every relation about as many.

A country has three flag colours and thousands of cities: a sample of its edges as they come would hold cities
alone. All is vectorised over entities, and a hub costs its relations, not its edges.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vispath_lit.errors import ConfigError
from vispath_lit.kg.csr import Ints
from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph

Longs = NDArray[np.int64]
SCANNED = 1024  # Edges of a row that is read whole; in longer ones each relation is found by bisection.
MOST = 1 << 14  # Edges of one ego-graph; with them a position's fraction stays within 64 bits.
FRACTION = 16  # Bits.


@dataclass(frozen=True, slots=True, eq=False)
class EgoGraphs:
    """The ego-graphs of n entities as M flat edges, by centre, then signed relation, then neighbour.

    Attributes:
        centre: `[M]` which of the n entities.
        relation: `[M]` signed relation from the centre to the neighbour.
        neighbour: `[M]` entity at the other end.
    """

    centre: Longs
    relation: Longs
    neighbour: Longs


@dataclass(frozen=True, slots=True, eq=False)
class _Runs:
    """Stretches of equal relation in the rows of n entities.

    Attributes:
        owner: `[m]` which of the n entities, ascending.
        relation: `[m]` signed relation, ascending within an entity.
        start: `[m]` where the stretch begins in the arrays of its direction.
        count: `[m]` edges, at least 1.
    """

    owner: Longs
    relation: Longs
    start: Longs
    count: Longs


def sample(graph: KnowledgeGraph, entities: Longs, edges: int, seed: int) -> EgoGraphs:
    """At most `edges` edges of each of `[n]` entities, in both directions.

    Each relation gives all its edges, or as many as any other that has more, or one more than those; an edge
    is as likely as any other of its relation. What an entity gets follows from it and `seed`, not from its
    company.

    Raises:
        ConfigError: `edges` outside 1 to 16,384.
    """
    if not 1 <= edges <= MOST:
        raise ConfigError(f"an ego-graph of {edges} edges; expected 1 to {MOST}")
    runs = _runs(graph, entities)
    luck = _luck(seed, entities[runs.owner], runs.relation)
    share = _shares(runs, luck, edges, len(entities))
    run, place = ranges(np.zeros_like(share), share)
    # Evenly spaced from a random beginning: distinct, as a stretch is no shorter than its share.
    begin = (luck >> np.uint64(64 - FRACTION)).astype(np.int64)[run]
    offset = ((place << FRACTION) + begin) * runs.count[run] // (share[run] << FRACTION)
    relation, position = runs.relation[run], runs.start[run] + offset
    backwards = relation >= graph.num_relations
    neighbour = np.empty(len(run), dtype=np.int64)
    neighbour[~backwards] = graph.out_tail[position[~backwards]]
    neighbour[backwards] = graph.in_tail[position[backwards]]
    return EgoGraphs(runs.owner[run], relation, neighbour)


def _runs(graph: KnowledgeGraph, entities: Longs) -> _Runs:
    forward = _runs_of(graph.out_indptr, graph.out_relation, entities, graph.num_relations)
    backward = _runs_of(graph.in_indptr, graph.in_relation, entities, graph.num_relations)
    owner, relation, start, count = (np.concatenate(pair) for pair in zip(forward, backward, strict=True))
    relation[len(forward[0]) :] += graph.num_relations
    order = np.argsort(owner, kind="stable")
    return _Runs(owner[order], relation[order], start[order], count[order])


def _runs_of(
    indptr: Longs, relation: Ints, entities: Longs, num_relations: int
) -> tuple[Longs, Longs, Longs, Longs]:
    """Owner, relation, start and count of each stretch of one direction."""
    start = indptr[entities]
    size = indptr[entities + 1] - start
    small = np.flatnonzero(size <= SCANNED)
    found = [_scanned(relation, start[small], size[small], small)]
    every = np.arange(num_relations, dtype=relation.dtype)  # Another type would copy the row.
    for hub in np.flatnonzero(size > SCANNED).tolist():
        low, high = start[hub], start[hub] + size[hub]
        bounds = np.searchsorted(relation[low:high], every)
        count = np.diff(bounds, append=high - low)
        kept = np.flatnonzero(count)
        found.append((np.full(len(kept), hub), kept, low + bounds[kept], count[kept]))
    owner, label, begin, count = (np.concatenate(column) for column in zip(*found, strict=True))
    order = np.argsort(owner, kind="stable")
    return owner[order], label[order], begin[order], count[order]


def _scanned(relation: Ints, start: Longs, size: Longs, owners: Longs) -> tuple[Longs, Longs, Longs, Longs]:
    row, position = ranges(start, size)
    label = relation[position].astype(np.int64)
    first = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(label, prepend=-1) != 0))
    count = np.diff(first, append=len(row))
    return owners[row[first]], label[first], position[first], count


def _luck(seed: int, entity: Longs, relation: Longs) -> NDArray[np.uint64]:
    """`[m]` random numbers that follow from the three alone (two rounds of SplitMix64's mixing)."""
    mixed = np.full(len(entity), seed & (2**64 - 1), dtype=np.uint64)
    for value in (entity, relation):
        mixed = (mixed ^ value.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed


def _shares(runs: _Runs, luck: NDArray[np.uint64], edges: int, entities: int) -> Longs:
    """`[m]` edges that each stretch gives: all of them, or a level that fills up its entity's `edges`."""
    total = _sums(runs.owner, runs.count, entities)
    rows = np.flatnonzero(total[runs.owner] > edges)
    share = runs.count.copy()
    if not len(rows):
        return share
    owner, count = runs.owner[rows], runs.count[rows]
    low: Longs = np.zeros(entities, dtype=np.int64)
    high: Longs = np.full(entities, edges)
    while (low < high).any():  # The highest level that does not give too many.
        middle: Longs = (low + high + 1) >> 1
        fits = _sums(owner, np.minimum(count, middle[owner]), entities) <= edges
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    level = np.minimum(count, low[owner])
    rest = edges - _sums(owner, level, entities)
    more = np.flatnonzero(count > level)
    # Bits that do not decide where in its stretch an edge lies.
    more = more[np.lexsort((luck[rows[more]] << np.uint64(FRACTION), owner[more]))]
    place = np.arange(len(more)) - np.searchsorted(owner[more], owner[more])
    level[more[place < rest[owner[more]]]] += 1
    share[rows] = level
    return share


def _sums(owner: Longs, values: Longs, owners: int) -> Longs:
    return np.bincount(owner, weights=values, minlength=owners).astype(np.int64)
