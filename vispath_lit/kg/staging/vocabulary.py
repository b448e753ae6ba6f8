"""Numbers texts in order of first appearance: a hash table of integers, looked up for whole columns at once.

Ten times faster than a join, and 12 bytes a text beside the texts themselves. A hash only proposes; every hit
is compared, and texts whose hashes collide live in a dictionary, so that none is ever taken for another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from vispath_lit.errors import DataError

MOST = 1 << 31  # Indices are 32 bits wide.


class Vocabulary:
    """Texts and their indices, 0 to n - 1."""

    def __init__(self) -> None:
        self._texts = pl.Series([], dtype=pl.String)
        self._hashes = np.zeros(0, dtype=np.uint64)
        self._slots = np.full(16, -1, dtype=np.int32)
        self._collided: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def texts(self) -> Any:
        """All texts as an Arrow large_string array."""
        return self._texts.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())

    def find(self, texts: Any) -> NDArray[np.int32]:
        """`[n]` the index of each text of an Arrow column, -1 where it is not known."""
        column = _series(texts)
        found = self._find(_hash(column))
        return self._verified(column, found)

    def add(self, texts: Any) -> NDArray[np.int32]:
        """`[n]` the index of each text; unknown ones are numbered as they appear."""
        column = _series(texts)
        hashes = _hash(column)
        found = self._verified(column, self._find(hashes))
        rows = np.flatnonzero(found < 0)
        if len(rows):
            found[rows] = self._extend(column.gather(rows), hashes[rows])
        return found

    def _extend(self, column: pl.Series, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        """Numbers texts of which none is known."""
        found = np.full(len(hashes), -1, dtype=np.int32)
        new = np.flatnonzero(self._find(hashes) < 0)
        if len(new):
            _, first, inverse = np.unique(hashes[new], return_index=True, return_inverse=True)
            order = np.argsort(first, kind="stable")
            rank = np.empty(len(first), dtype=np.int32)
            rank[order] = np.arange(len(first), dtype=np.int32)
            found[new] = rank[inverse] + len(self)
            self._append(column.gather(new[first[order]]), hashes[new[first[order]]])
            found = self._verified(column, found)
        for row in np.flatnonzero(found < 0).tolist():  # Another text has the same hash.
            text = column[row]
            if text not in self._collided:
                self._collided[text] = len(self)
                self._texts = pl.concat([self._texts, pl.Series([text], dtype=pl.String)], rechunk=True)
                self._hashes = np.append(self._hashes, hashes[row])
            found[row] = self._collided[text]
        return found

    def _append(self, column: pl.Series, hashes: NDArray[np.uint64]) -> None:
        start = len(self)
        if start + len(column) >= MOST:
            raise DataError(f"{start + len(column)} distinct entities; at most {MOST - 1} can be numbered")
        self._texts = pl.concat([self._texts, column.alias("")], rechunk=True)
        self._hashes = np.concatenate([self._hashes, hashes])
        if 2 * len(self._hashes) > len(self._slots):
            self._slots = np.full(1 << (4 * len(self._hashes)).bit_length(), -1, dtype=np.int32)
            start = 0
        todo = np.arange(start, len(self._hashes), dtype=np.int32)
        if start == 0 and self._collided:
            todo = np.setdiff1d(todo, list(self._collided.values()))
        last = len(self._slots) - 1
        place = (self._hashes[todo] & np.uint64(last)).astype(np.int64)
        while len(todo):
            free = self._slots[place] < 0
            self._slots[place[free]] = todo[free]  # Of several at one place the last one stays.
            lost = self._slots[place] != todo
            todo, place = todo[lost], (place[lost] + 1) & last

    def _find(self, hashes: NDArray[np.uint64]) -> NDArray[np.int32]:
        found = np.full(len(hashes), -1, dtype=np.int32)
        if not len(self):
            return found
        last = len(self._slots) - 1
        rows = np.arange(len(hashes))
        place = (hashes & np.uint64(last)).astype(np.int64)
        while len(rows):
            index = self._slots[place]
            held = index >= 0
            hit = held & (self._hashes[index] == hashes[rows])
            found[rows[hit]] = index[hit]
            onward = held & ~hit
            rows, place = rows[onward], (place[onward] + 1) & last
        return found

    def _verified(self, column: pl.Series, found: NDArray[np.int32]) -> NDArray[np.int32]:
        """Takes back hits whose text differs, and looks for those among the collided ones."""
        rows = np.flatnonzero(found >= 0)
        if len(rows):
            asked = column if len(rows) == len(found) else column.gather(rows)
            wrong = rows[(self._texts.gather(found[rows]) != asked).to_numpy()]
            for row in wrong.tolist():
                found[row] = self._collided.get(column[row], -1)
        return found


def _series(texts: Any) -> pl.Series:
    return pl.Series(pl.from_arrow(texts), dtype=pl.String)


def _hash(column: pl.Series) -> NDArray[np.uint64]:
    return column.hash().to_numpy()
