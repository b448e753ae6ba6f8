"""Name vectors as bytes on disk, found through a product quantizer in memory.

A name costs one byte a dimension on disk, which are mapped, and 4 bits for every six dimensions in memory. A
search compares the query with all names by the latter (faiss's fast scan) and decides by the bytes.
Inverted lists find less in the same time: names that share a word with the query lie in many lists.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

faiss: Any = _faiss  # its stubs lack what its wrappers add
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

CODES, SCALE, QUANTIZER = "codes.npy", "scale.npy", "quantizer.faiss"
SAMPLE = 20_000  # names that the quantizer is learned from
SPAN = 6  # dimensions that share a code of 4 bits
ROOM = 1.1  # The bytes reach so many times as far as the sample does.
SHORTLIST = 40  # times k, at least


def shortlist(names: int, k: int) -> int:
    """Names that the bytes decide on."""
    return min(names, max(SHORTLIST * k, 2 * math.isqrt(names)))


def train(sample: Floats) -> tuple[Any, Floats]:
    """A quantizer without names and the size of a byte's step in each dimension, of `[s, d]` unit vectors."""
    dim = sample.shape[1]
    parts = max(m for m in range(1, max(1, dim // SPAN) + 1) if dim % m == 0)
    index = faiss.IndexPQFastScan(dim, parts, 4, faiss.METRIC_INNER_PRODUCT)
    index.pq.cp.min_points_per_centroid = 1
    index.train(np.ascontiguousarray(sample, dtype=np.float32))
    reach = np.abs(sample).max(axis=0) * ROOM
    return index, np.maximum(reach / 127, 1e-9).astype(np.float32)


def write(
    folder: Path, learned: tuple[Any, Floats], names: int, batches: Iterable[tuple[Ints, Floats]]
) -> None:
    """Writes the files of `names` names, whose numbers `[b]` and vectors `[b, d]` come in order."""
    index, scale = learned
    codes = _codes(folder, names, len(scale))
    _add(index, scale, codes, batches)
    np.save(folder / SCALE, scale, allow_pickle=False)
    faiss.write_index(index, str(folder / QUANTIZER))
    codes.flush()


def grow(folder: Path, before: Path, names: int, batches: Iterable[tuple[Ints, Floats]]) -> None:
    """Writes the files of an earlier folder with further names behind its own."""
    index, scale = faiss.read_index(str(before / QUANTIZER)), np.load(before / SCALE, allow_pickle=False)
    old = np.load(before / CODES, mmap_mode="r", allow_pickle=False)
    codes = _codes(folder, names, len(scale))
    for start in range(0, len(old), 1 << 16):
        codes[start : min(start + (1 << 16), len(old))] = old[start : start + (1 << 16)]
    _add(index, scale, codes, batches)
    np.save(folder / SCALE, scale, allow_pickle=False)
    faiss.write_index(index, str(folder / QUANTIZER))
    codes.flush()


def _codes(folder: Path, names: int, dim: int) -> Any:
    return np.lib.format.open_memmap(folder / CODES, mode="w+", dtype=np.int8, shape=(names, dim))


def _add(index: Any, scale: Floats, codes: Any, batches: Iterable[tuple[Ints, Floats]]) -> None:
    for numbers, vectors in batches:
        index.add(np.ascontiguousarray(vectors, dtype=np.float32))
        codes[numbers[0] : numbers[-1] + 1] = np.clip(np.rint(vectors / scale), -127, 127)


class CodedNames:
    """The vectors of a folder, opened without reading its bytes.

    Args:
        alive: `[U]`, which numbers may be found; None for all.

    Raises:
        RuntimeError: a file that faiss cannot read.
        OSError, ValueError: a file that is missing, or of another shape.
    """

    def __init__(self, folder: Path, dim: int, names: int, alive: NDArray[np.bool_] | None) -> None:
        index = faiss.read_index(str(folder / QUANTIZER))
        codes = np.load(folder / CODES, mmap_mode="r", allow_pickle=False)
        scale = np.load(folder / SCALE, allow_pickle=False)
        if not isinstance(index, faiss.IndexPQFastScan) or (index.d, index.ntotal) != (dim, names):
            raise ValueError(f"a quantizer of {index.ntotal} x {index.d}, expected {names} x {dim}")
        if (codes.shape, codes.dtype, scale.shape) != ((names, dim), np.dtype(np.int8), (dim,)):
            raise ValueError(f"codes of {codes.dtype} and shape {codes.shape}, expected int8 {names} x {dim}")
        self._index, self._codes, self._scale, self._alive = index, codes.view(np.ndarray), scale, alive
        self.shortlist: int | None = None  # by `shortlist` where None

    def search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        """Scores and numbers `[n, k]` of the nearest names; -1 where there are fewer. Ties by number."""
        wide = min(len(self._codes), self.shortlist or shortlist(len(self._codes), k))
        _, near = self._index.search(queries, max(k, wide))
        near.sort(axis=1)  # rows are then read in their order on disk
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        numbers = np.full((len(queries), k), -1, dtype=np.int64)
        for row, (query, some) in enumerate(zip(queries * self._scale, near, strict=True)):
            found = some[some >= 0]
            found = found if self._alive is None else found[self._alive[found]]
            cosine = self._codes[found].astype(np.float32) @ query
            best = np.argsort(-cosine, kind="stable")[:k]
            scores[row, : len(best)], numbers[row, : len(best)] = cosine[best], found[best]
        return scores, numbers
