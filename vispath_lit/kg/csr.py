"""Compressed sparse rows: the edges of each entity as one slice of two arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Adjacency:
    """One direction of a graph with N entities and T triples.

    Attributes:
        indptr: `[N + 1]` int64; the edges of entity e lie at `indptr[e]:indptr[e + 1]`.
        relation: `[T]` uint16 (int32 from 65,536 relations on), ascending in a row.
        tail: `[T]` int32, ascending within equal relations of a row.
    """

    indptr: NDArray[np.int64]
    relation: Ints
    tail: Ints


def relation_dtype(num_relations: int) -> np.dtype[Any]:
    """The narrowest type that holds every relation."""
    return np.dtype(np.uint16 if num_relations <= 1 << 16 else np.int32)


def adjacency(head: Ints, relation: Ints, tail: Ints, num_entities: int, num_relations: int) -> Adjacency:
    """Sorts triples by (head, relation, tail) and drops exact repetitions.

    A triple is packed into one 64-bit key where it fits (4.6 M entities and 822 relations take 56 bits):
    one sort of plain integers, four times faster than `lexsort` and without a permutation in memory.

    Args:
        head, relation, tail: `[T]` each.
    """
    entity_bits = max(1, (num_entities - 1).bit_length())
    relation_bits = max(1, (num_relations - 1).bit_length())
    if 2 * entity_bits + relation_bits > 64:
        head, relation, tail = _distinct_by_columns(head, relation, tail)
    else:
        key = head.astype(np.uint64)
        key <<= np.uint64(relation_bits)
        key |= relation.astype(np.uint64)
        key <<= np.uint64(entity_bits)
        key |= tail.astype(np.uint64)
        key.sort()
        key = key[_differs(key)]
        tail = (key & np.uint64((1 << entity_bits) - 1)).astype(np.int32)
        key >>= np.uint64(entity_bits)
        relation = (key & np.uint64((1 << relation_bits) - 1)).astype(relation_dtype(num_relations))
        key >>= np.uint64(relation_bits)
        head = key.astype(np.int32)
    indptr = np.zeros(num_entities + 1, dtype=np.int64)
    np.cumsum(np.bincount(head, minlength=num_entities), out=indptr[1:])
    return Adjacency(
        indptr, relation.astype(relation_dtype(num_relations), copy=False), tail.astype(np.int32, copy=False)
    )


def heads(indptr: NDArray[np.int64]) -> NDArray[np.int32]:
    """`[T]` the entity whose row each edge lies in."""
    return np.repeat(np.arange(len(indptr) - 1, dtype=np.int32), np.diff(indptr))


def _distinct_by_columns(head: Ints, relation: Ints, tail: Ints) -> tuple[Ints, Ints, Ints]:
    order = np.lexsort((tail, relation, head))
    head, relation, tail = head[order], relation[order], tail[order]
    new = _differs(head) | _differs(relation) | _differs(tail)
    return head[new], relation[new], tail[new]


def _differs(values: Ints) -> NDArray[np.bool_]:
    new = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return new
