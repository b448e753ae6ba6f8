"""Text to entity without a dictionary in memory: sorted 64-bit hashes, searched in the mapped file.

A hash only proposes: the caller compares the text itself, so a collision costs time, never truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

SLICE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class HashTable:
    """M (hash, entity) pairs.

    Attributes:
        hashes: `[M]` uint64, ascending.
        entities: `[M]` int32; ascending within equal hashes.
    """

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]

    def find(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """For each text the entities that may bear it, `[k]` ascending."""
        keys = hash_texts(texts)
        low = np.searchsorted(self.hashes, keys, side="left").tolist()
        high = np.searchsorted(self.hashes, keys, side="right").tolist()
        return [self.entities[i:j] for i, j in zip(low, high, strict=True)]


def hash_texts(texts: Iterable[str]) -> NDArray[np.uint64]:
    """`[n]` xxh3 of each text's UTF-8 bytes; a lone surrogate, which no store holds, hashes like any text."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(text.encode("utf8", "surrogatepass")) for text in texts), dtype=np.uint64)


def hash_column(column: Any) -> NDArray[np.uint64]:
    """`[n]` hashes of an Arrow text column, a slice at a time: Python texts take ten times the space."""
    digest = xxhash.xxh3_64_intdigest
    hashes = np.empty(len(column), dtype=np.uint64)
    for start in range(0, len(column), SLICE):
        part = column.slice(start, SLICE).cast(
            pa.large_binary()
        )  # UTF-8 as it lies there, not encoded again.
        hashes[start : start + SLICE] = np.fromiter(map(digest, part.to_pylist()), np.uint64, len(part))
    return hashes


def hash_table(hashes: NDArray[np.uint64], entities: NDArray[Any]) -> HashTable:
    """Sorts pairs by (hash, entity) and drops repeated pairs.

    Args:
        hashes: `[n]`.
        entities: `[n]`, 0 to 2^31 - 1.
    """
    order = np.argsort(hashes)  # Of equal hashes in any order: they are sorted below.
    hashes, entities = hashes[order], entities[order].astype(np.int32, copy=False)
    del order
    again = np.zeros(len(hashes), dtype=bool)
    np.equal(hashes[1:], hashes[:-1], out=again[1:])
    _sort_runs(again, entities)
    again[1:] &= entities[1:] == entities[:-1]
    if not again.any():
        return HashTable(hashes, entities)
    return HashTable(hashes[~again], entities[~again])


def _sort_runs(inside: NDArray[np.bool_], values: NDArray[np.int32]) -> None:
    """Sorts `values` within each run, in place; `inside` marks all but the first element of a run.

    Run and value are one integer: several times faster than a sort by two columns.
    """
    tied = inside.copy()
    tied[:-1] |= inside[1:]
    rows = np.flatnonzero(tied)
    key = np.cumsum(~inside[rows], dtype=np.uint64) << np.uint64(32)
    key |= values[rows].astype(np.uint64)
    key.sort()
    values[rows] = (key & np.uint64(0xFFFFFFFF)).astype(np.int32)
