"""Gold paths: forward walks with one possible end at every step, and no shorter way to that end.

Up to 64 starts are searched at once: bit b of a 64-bit word says whether start b reaches an entity,
so one level of a breadth-first search over all edges is one `bitwise_or.reduceat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
BLOCK = 64


class Graph(Protocol):
    """The arrays of `vispath_lit.kg.store.KnowledgeGraph` that a walk needs."""

    @property
    def num_entities(self) -> int: ...
    @property
    def num_relations(self) -> int: ...
    @property
    def out_indptr(self) -> NDArray[np.integer]: ...
    @property
    def out_relation(self) -> NDArray[np.integer]: ...
    @property
    def out_tail(self) -> NDArray[np.integer]: ...
    @property
    def in_indptr(self) -> NDArray[np.integer]: ...
    @property
    def in_tail(self) -> NDArray[np.integer]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Walks:
    """W walks of h steps: `entities` is `[W, h + 1]` with the start first, `relations` is `[W, h]`."""

    entities: Ints
    relations: Ints

    def __len__(self) -> int:
        return len(self.entities)

    @property
    def hops(self) -> int:
        return int(self.relations.shape[1])

    def select(self, rows: NDArray[np.generic]) -> Walks:
        """The walks at `rows` (positions or a mask)."""
        return Walks(self.entities[rows], self.relations[rows])

    @staticmethod
    def join(parts: list[Walks]) -> Walks:
        """The walks of all parts, which have the same number of steps, in order."""
        return Walks(
            np.concatenate([p.entities for p in parts]), np.concatenate([p.relations for p in parts])
        )


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The edges a gold path may take, as CSR rows by head."""

    indptr: Ints
    relation: Ints
    tail: Ints


def functional_steps(graph: Graph, allowed: NDArray[np.bool_]) -> Steps:
    """Edges that are the only one of their relation at their head.

    Args:
        allowed: `[R]`, the relations a gold path may use.
    """
    indptr = np.asarray(graph.out_indptr, dtype=np.int64)
    relation = np.asarray(graph.out_relation, dtype=np.int64)
    tail = np.asarray(graph.out_tail, dtype=np.int64)
    head = np.repeat(np.arange(graph.num_entities, dtype=np.int64), np.diff(indptr))
    group = head * graph.num_relations + relation
    _, inverse, counts = np.unique(group, return_inverse=True, return_counts=True)
    keep = (counts[inverse] == 1) & allowed[relation] & (head != tail)
    kept = np.bincount(head[keep], minlength=graph.num_entities)
    return Steps(np.concatenate([[0], np.cumsum(kept)]), relation[keep], tail[keep])


def reach(graph: Graph, starts: Ints, depth: int, *, undirected: bool = False) -> Words:
    """`[depth + 1, N]`: bit b of `[d, v]` says whether `starts[b]` reaches v in at most d steps.

    Args:
        starts: at most 64 distinct entities.
        undirected: whether edges may be walked backwards too.
    """
    levels = np.zeros((depth + 1, graph.num_entities), dtype=np.uint64)
    levels[0, starts] = np.uint64(1) << np.arange(len(starts), dtype=np.uint64)
    sources = [(graph.in_indptr, graph.in_tail)]
    if undirected:
        sources.append((graph.out_indptr, graph.out_tail))
    for d in range(1, depth + 1):
        levels[d] = levels[d - 1]
        for indptr, neighbour in sources:
            rows = np.flatnonzero(np.diff(indptr))
            gathered = levels[d - 1][np.asarray(neighbour)]
            levels[d, rows] |= np.bitwise_or.reduceat(gathered, np.asarray(indptr)[rows])
    return levels


def has_bit(words: Words, entity: Ints, bit: Ints) -> NDArray[np.bool_]:
    """Whether start `bit[i]` reaches `entity[i]`."""
    return ((words[entity] >> bit.astype(np.uint64)) & np.uint64(1)).astype(bool)


def blocks(starts: Ints) -> Iterator[Ints]:
    """`starts` in pieces that fit one machine word."""
    for at in range(0, len(starts), BLOCK):
        yield starts[at : at + BLOCK]


def extend(walks: Walks, steps: Steps) -> Walks:
    """Every walk by every edge its end may take, in the order of walks, then edges."""
    ends = walks.entities[:, -1]
    width = steps.indptr[ends + 1] - steps.indptr[ends]
    parent = np.repeat(np.arange(len(walks)), width)
    offset = np.arange(len(parent)) - np.repeat(np.cumsum(width) - width, width)
    edge = steps.indptr[ends][parent] + offset
    return Walks(
        np.column_stack([walks.entities[parent], steps.tail[edge]]),
        np.column_stack([walks.relations[parent], steps.relation[edge]]),
    )


def shortest_walks(
    graph: Graph, steps: Steps, starts: Ints, depth: int, thin: Callable[[Walks], Walks] | None = None
) -> list[Walks]:
    """All walks of 1 to `depth` steps from `starts` that no shorter forward path undercuts.

    As every prefix is a shortest path too, no walk visits an entity twice or steps straight back.

    Args:
        thin: leaves out some walks of each length, before they are kept and extended; None keeps all.

    Returns:
        One `Walks` a length, ordered by start.
    """
    found: list[list[Walks]] = [[] for _ in range(depth)]
    for block in blocks(starts):
        levels = reach(graph, block, depth)
        bit_of = np.zeros(graph.num_entities, dtype=np.int64)
        bit_of[block] = np.arange(len(block))
        walks = Walks(block[:, None], np.zeros((len(block), 0), dtype=np.int64))
        for d in range(1, depth + 1):
            walks = extend(walks, steps)
            nearer = has_bit(levels[d - 1], walks.entities[:, -1], bit_of[walks.entities[:, 0]])
            walks = walks.select(~nearer)
            walks = walks if thin is None else thin(walks)
            found[d - 1].append(walks)
    return [Walks.join(parts) for parts in found]


def nearer_through_inverse(graph: Graph, walks: Walks) -> NDArray[np.bool_]:
    """`[W]`: whether an edge walked backwards makes a shorter way from start to end."""
    nearer = np.zeros(len(walks), dtype=bool)
    start, end = walks.entities[:, 0], walks.entities[:, -1]
    for block in blocks(np.unique(start)):
        mine = np.flatnonzero(np.isin(start, block))
        level = reach(graph, block, walks.hops - 1, undirected=True)[-1]
        nearer[mine] = has_bit(level, end[mine], np.searchsorted(block, start[mine]))
    return nearer
