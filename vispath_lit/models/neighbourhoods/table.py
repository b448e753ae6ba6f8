"""The vectors of all entities for one set of weights, without a gradient."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.encoders.batching import track_if_slow
from vispath_lit.models.mapped_table import mapped_table

CHUNK = 512  # entities encoded at once; always the same ones together, so that their bits never differ
DOING = "encoding neighbourhoods"
Encode = Callable[[NDArray[np.int64]], NDArray[Any]]


class VectorTable:
    """`[N, k]` float16 rows that are encoded when they are needed, and forgotten when the weights change.

    Args:
        encode: gives the vectors of some entities with the weights as they are.
    """

    def __init__(self, encode: Encode, entities: int, dim: int) -> None:
        self.encode = encode
        self.shape = (entities, dim)
        self._weights: Hashable = None
        self._rows: NDArray[Any] | None = None
        self._known: NDArray[np.bool_] | None = None
        self._lock = threading.Lock()  # searches side by side ask for the same rows

    def forget(self, weights: Hashable) -> None:
        """Drops the rows, unless they are of these weights; None stands for several steps of training."""
        if weights != self._weights:
            self.clear()
            self._weights = weights

    def clear(self) -> None:
        """Drops the rows."""
        self._rows, self._known = None, None

    def known(self, weights: Hashable) -> tuple[NDArray[np.int64], NDArray[Any]] | None:
        """Entities `[m]` and rows `[m, k]` that were encoded one by one, if they are of these weights."""
        if weights != self._weights or self._rows is None or self._known is None:
            return None
        entities = np.flatnonzero(self._known)
        return entities, self._rows[entities]

    def fits(self, entities: NDArray[Any], rows: NDArray[Any]) -> bool:
        """Whether these could be what `known` gave."""
        if entities.dtype != np.int64 or entities.ndim != 1 or rows.dtype != np.float16:
            return False
        inside = bool(((entities >= 0) & (entities < self.shape[0])).all())
        return inside and rows.shape == (len(entities), self.shape[1]) and bool(np.isfinite(rows).all())

    def fill(self, weights: Hashable, entities: NDArray[np.int64], rows: NDArray[Any]) -> None:
        """Holds these rows from now on."""
        self.forget(weights)
        self._rows = np.zeros(self.shape, dtype=np.float16)
        self._known = np.zeros(self.shape[0], dtype=bool)
        self._rows[entities], self._known[entities] = rows, True

    def some(self, entities: NDArray[np.int64]) -> NDArray[Any]:
        """The table `[N, k]`, in which the rows of these `[n]` entities are encoded."""
        with self._lock:
            if self._rows is None:
                # Zeros take no memory until they are written: a graph of millions costs what is used of it.
                self._rows = np.zeros(self.shape, dtype=np.float16)
                self._known = np.zeros(self.shape[0], dtype=bool)
            if self._known is not None and not self._known[entities].all():
                missing = np.unique(entities[~self._known[entities]])
                for low in range(0, len(missing), CHUNK):
                    self._rows[missing[low : low + CHUNK]] = self.encode(missing[low : low + CHUNK])
                self._known[missing] = True
            return self._rows

    def all(self, file: Path | None) -> NDArray[Any]:
        """The table `[N, k]` with all its rows, kept in `file` where one is named."""
        with self._lock:
            if self._rows is None or self._known is not None:
                self._rows = self._mapped(file) if file is not None else self._whole()
                self._known = None
            return self._rows

    def _mapped(self, file: Path) -> NDArray[Any]:
        return mapped_table(file, self.shape, self._slice, CHUNK, DOING)

    def _whole(self) -> NDArray[Any]:
        rows = np.empty(self.shape, dtype=np.float16)
        for low in track_if_slow(range(0, self.shape[0], CHUNK), DOING):
            some = slice(low, min(low + CHUNK, self.shape[0]))
            rows[some] = self._slice(some)
        return rows

    def _slice(self, rows: slice) -> NDArray[Any]:
        return self.encode(np.arange(rows.start, rows.stop))
