"""The content fingerprint of a graph: equal content, equal fingerprint, on any machine and in any folder.

It covers ids, texts, distinct triples and the bytes of reference images; neither the order of the lines of
triples.tsv nor any path, time or integer width. The order of entities and relations counts, because it
defines their indices, which models and caches store; so does the order of one entity's images.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vispath_lit.kg.csr import Ints

STEP = 1 << 20  # Numbers that are converted at a time.


class ContentHash:
    """Hashes named arrays and text columns, each with its length, so that no two contents run together."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def integers(self, name: str, values: Ints) -> None:
        self._field(name, len(values))
        for start in range(0, len(values), STEP):
            self._hash.update(np.ascontiguousarray(values[start : start + STEP], dtype="<i8").data)

    def texts(self, name: str, column: Any) -> None:
        """A large_string or large_list column without nulls."""
        offsets = _offsets(column)
        self._field(f"{name}/lengths", len(column))
        for start in range(0, len(column), STEP):
            self._hash.update(np.diff(offsets[start : start + STEP + 1]).astype("<i8", copy=False).data)
        if pa.types.is_large_list(column.type):
            self.texts(f"{name}/items", column.flatten())
            return
        data = column.buffers()[2]
        self._field(name, int(offsets[-1] - offsets[0]))
        if data is not None:
            self._hash.update(memoryview(data)[int(offsets[0]) : int(offsets[-1])])

    def hexdigest(self) -> str:
        """32 hexadecimal digits."""
        return self._hash.hexdigest()[:32]

    def _field(self, name: str, length: int) -> None:
        self._hash.update(f"{name}:{length};".encode())


def _offsets(column: Any) -> NDArray[np.int64]:
    buffer = column.buffers()[1]
    if buffer is None or len(column) == 0:
        return np.zeros(1, dtype=np.int64)
    return np.frombuffer(buffer, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
