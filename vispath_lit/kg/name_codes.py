"""Name vectors as bytes on disk, found through a product quantizer in memory.

A name costs one byte a dimension on disk, which are mapped, and 4 bits for every eight dimensions in memory,
rotated so that these lose little (OPQ: Ge et al., "Optimized Product Quantization", TPAMI 2014). A search
compares the query with all names by the latter (faiss's fast scan) and decides by the bytes. Inverted lists
find less in the same time: names that share a word with the query lie in many lists.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
SPAN = 8  # dimensions that share a code of 4 bits
ROTATIONS = 8  # Rounds of OPQ; further ones gain nothing.
ROOM = 1.05  # The bytes reach so many times as far as the sample does.
SHORTLIST = 28  # times k, at least
TOGETHER = 0x33333  # Fifteen queries in a pass over the codes; a third faster than faiss's own choice.
BATCH = 1024  # queries whose shortlists are held at once; 17 MB of a million names
PIECE = 64  # queries that a thread decides on at once


def shortlist(names: int, k: int) -> int:
    """Names that the bytes decide on."""
    return min(names, max(SHORTLIST * k, math.isqrt(4 * names)))


def train(sample: Floats) -> tuple[Any, Floats]:
    """A quantizer without names and what bytes mean, of `[s, d]` unit vectors.

    The latter is `[2, d]`: what nought stands for in each dimension, and the size of a step.
    """
    sample = np.ascontiguousarray(sample, dtype=np.float32)
    dim = sample.shape[1]
    parts = max(m for m in range(1, max(1, dim // SPAN) + 1) if dim % m == 0)
    quantizer = faiss.IndexPQFastScan(dim, parts, 4, faiss.METRIC_INNER_PRODUCT)
    quantizer.pq.cp.min_points_per_centroid = 1
    with _one_thread():
        rotation = _rotation(sample, parts)
        quantizer.train(rotation.apply(sample))
    low, high = sample.min(axis=0), sample.max(axis=0)
    step = np.maximum(ROOM * (high - low) / (2 * 127), 1e-9)
    return faiss.IndexPreTransform(rotation, quantizer), np.stack([(low + high) / 2, step])


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """For faiss's small matrix products: threads that share one mostly wait, on a busy machine for long."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _rotation(sample: Floats, parts: int) -> Any:
    """The rotation under which a quantizer of so many parts loses least."""
    dim = sample.shape[1]
    # From principal components spread evenly over the parts OPQ gets there in fewer rounds than from chance.
    spread = faiss.PCAMatrix(dim, dim)
    spread.balanced_bins = parts
    spread.train(sample)
    rotation = faiss.OPQMatrix(dim, parts, dim)
    faiss.copy_array_to_vector(faiss.vector_to_array(spread.A), rotation.A)
    rotation.niter = ROTATIONS
    tried = faiss.ProductQuantizer(dim, parts, 4)
    tried.cp.min_points_per_centroid = 1
    rotation.pq = tried
    rotation.train(sample)
    rotation.pq = None
    return rotation


def write(
    folder: Path, learned: tuple[Any, Floats], names: int, batches: Iterable[tuple[Ints, Floats]]
) -> None:
    """Writes the files of `names` names, whose numbers `[b]` and vectors `[b, d]` come in order."""
    index, scale = learned
    codes = _codes(folder, names, index.d)
    _add(index, scale, codes, batches)
    np.save(folder / SCALE, scale, allow_pickle=False)
    faiss.write_index(index, str(folder / QUANTIZER))
    codes.flush()


def grow(folder: Path, before: Path, names: int, batches: Iterable[tuple[Ints, Floats]]) -> None:
    """Writes the files of an earlier folder with further names behind its own."""
    index, scale = faiss.read_index(str(before / QUANTIZER)), np.load(before / SCALE, allow_pickle=False)
    old = np.load(before / CODES, mmap_mode="r", allow_pickle=False)
    codes = _codes(folder, names, index.d)
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
        codes[numbers[0] : numbers[-1] + 1] = np.clip(np.rint((vectors - scale[0]) / scale[1]), -127, 127)


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
        if not isinstance(index, faiss.IndexPreTransform) or index.chain.size() != 1:
            raise ValueError(f"a {type(index).__name__}, expected a quantizer behind one rotation")
        inner = faiss.downcast_index(index.index)
        if not isinstance(inner, faiss.IndexPQFastScan) or (index.d, inner.ntotal) != (dim, names):
            raise ValueError(f"a quantizer of {inner.ntotal} x {index.d}, expected {names} x {dim}")
        if (codes.shape, codes.dtype, scale.shape) != ((names, dim), np.dtype(np.int8), (2, dim)):
            raise ValueError(f"codes of {codes.dtype} and shape {codes.shape}, expected int8 {names} x {dim}")
        self._index = index  # which owns the next two
        self._rotation = faiss.downcast_VectorTransform(index.chain.at(0))
        self._quantizer = inner
        self._quantizer.qbs = TOGETHER
        self._codes, self._scale, self._alive = codes.view(np.ndarray), scale, alive
        self.shortlist: int | None = None  # by `shortlist` where None

    def search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        """Scores and numbers `[n, k]` of the nearest names; -1 where there are fewer. Ties by number.

        Works in as many threads as faiss is set to use.
        """
        scores = np.full((len(queries), k), -np.inf, dtype=np.float32)
        numbers = np.full((len(queries), k), -1, dtype=np.int64)
        wide = max(k, min(len(self._codes), self.shortlist or shortlist(len(self._codes), k)))
        with _one_thread():
            rotated = self._rotation.apply(queries)
        base, scaled = np.einsum("nd,d->n", queries, self._scale[0]), queries * self._scale[1]
        with ThreadPoolExecutor(faiss.omp_get_max_threads()) as pool:
            for start in range(0, len(queries), BATCH):
                batch = slice(start, start + BATCH)
                _, near = self._quantizer.search(rotated[batch], wide)
                spread = map if len(near) <= PIECE else pool.map
                work = (
                    _pieces(array)
                    for array in (near, base[batch], scaled[batch], scores[batch], numbers[batch])
                )
                list(spread(self._decide, *work))
        return scores, numbers

    def _decide(self, near: Ints, base: Floats, scaled: Floats, scores: Floats, numbers: Ints) -> None:
        """Fills `[p, k]` scores and numbers with the best of `[p, w]` names.

        A name's score is the product of its bytes with its row of `[p, d]` scaled queries, and `[p]` base.
        """
        near.sort(axis=1)  # rows are then read in their order on disk
        width, dim, k = near.shape[1], scaled.shape[1], scores.shape[1]
        # Fresh arrays for every query would cost more than what is done with them.
        codes, floats = np.empty((width, dim), np.int8), np.empty((width, dim), np.float32)
        for row, (query, some) in enumerate(zip(scaled, near, strict=True)):
            found = some[some >= 0]
            found = found if self._alive is None else found[self._alive[found]]
            # As no number is out of bounds, nothing is clipped; only so is it written in place.
            np.take(self._codes, found, axis=0, out=codes[: len(found)], mode="clip")
            np.copyto(floats[: len(found)], codes[: len(found)])
            # Not by BLAS, whose own threads wait for each other where several queries are at work.
            cosine = base[row] + np.einsum("nd,d->n", floats[: len(found)], query)
            best = _best(cosine, k)
            scores[row, : len(best)], numbers[row, : len(best)] = cosine[best], found[best]


def _pieces(array: NDArray[Any]) -> list[NDArray[Any]]:
    return [array[low : low + PIECE] for low in range(0, len(array), PIECE)]


def _best(cosine: Floats, k: int) -> Ints:
    """Where the k highest of `[n]` values are, best first; ties by place."""
    if len(cosine) > k:
        least = np.partition(cosine, len(cosine) - k)[len(cosine) - k]
        above = np.flatnonzero(cosine >= least)
    else:
        above = np.arange(len(cosine))
    order: Ints = above[np.argsort(-cosine[above], kind="stable")[:k]]
    return order
