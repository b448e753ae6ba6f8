"""Name vectors as bytes in inverted lists on disk: built shard by shard, merged there, searched mapped.

A name costs one byte a dimension and its number; a search looks at the lists whose centres are nearest to the
query. What is in memory while building is one shard.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import faiss as _faiss
import numpy as np
from numpy.typing import NDArray

faiss: Any = _faiss  # its stubs lack what its wrappers add
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]

LISTS, DATA, EMPTY = "lists.faiss", "lists.ivfdata", "empty.faiss"
SHARD = 131_072  # names a shard: some 52 MB for 384 dimensions
SAMPLE = 40  # names a list that its centre is learned from
ROUNDS = 10  # of k-means


def list_count(names: int) -> int:
    """As many lists as a list has names, to a power of two."""
    return 1 << round(math.log2(max(1, names)) / 2)


def probes(lists: int) -> int:
    """Lists that a query looks at."""
    return min(lists, max(16, lists // 32))


def train(sample: Floats, lists: int) -> Any:
    """Empty lists with centres and byte ranges learned from `[s, d]` unit vectors; seeded."""
    dim = sample.shape[1]
    index = faiss.IndexIVFScalarQuantizer(
        faiss.IndexFlatIP(dim),
        dim,
        lists,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
        False,  # bytes of the vector, not of its difference to a centre: a few points more recall by cosine
    )
    index.cp.niter, index.cp.seed = ROUNDS, 1234
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, SAMPLE
    index.train(np.ascontiguousarray(sample, dtype=np.float32))
    return index


def write(
    folder: Path, empty: Any, batches: Iterator[tuple[Ints, Floats]], before: Path | None, home: Path
) -> None:
    """Writes `folder`'s lists: those of an earlier folder, and the numbered vectors of `batches`.

    Args:
        home: where the folder will lie.
        empty: trained lists without names.
        before: a folder whose lists were trained alike, or None.
    """
    faiss.write_index(empty, str(folder / EMPTY))
    parts = [] if before is None else [_mapped(before)]
    shards = _shards(folder, empty, batches)
    try:
        parts += [faiss.read_index(str(shard), faiss.IO_FLAG_MMAP) for shard in shards]
        _merge(folder, empty, parts, home)
    finally:
        del parts
        for shard in shards:
            shard.unlink(missing_ok=True)


def _shards(folder: Path, empty: Any, batches: Iterator[tuple[Ints, Floats]]) -> list[Path]:
    shards: list[Path] = []
    shard = faiss.clone_index(empty)
    for numbers, vectors in batches:
        shard.add_with_ids(np.ascontiguousarray(vectors, dtype=np.float32), numbers)
        if shard.ntotal >= SHARD:
            _write_shard(shard, folder, shards)
            shard = faiss.clone_index(empty)
    if shard.ntotal:
        _write_shard(shard, folder, shards)
    return shards


def _write_shard(shard: Any, folder: Path, shards: list[Path]) -> None:
    shards.append(folder / f"shard{len(shards):04d}.faiss")
    faiss.write_index(shard, str(shards[-1]))


def _merge(folder: Path, empty: Any, parts: Sequence[Any], home: Path) -> None:
    """One file of lists from those of all parts, copied through mapped pages."""
    whole = faiss.clone_index(empty)
    lists = faiss.OnDiskInvertedLists(whole.nlist, whole.code_size, str(folder / DATA))
    pointers = faiss.InvertedListsPtrVector()
    for part in parts:
        pointers.push_back(part.invlists)
    with _stdout_on_stderr():
        whole.ntotal = lists.merge_from_multiple(pointers.data(), pointers.size(), False)
    lists.filename = str(home / DATA)
    whole.replace_invlists(lists, False)
    faiss.write_index(whole, str(folder / LISTS))
    whole.replace_invlists(None, False)


def _mapped(folder: Path) -> Any:
    """The index of a folder with its lists mapped.

    They are looked for where the folder was made; a folder that was moved looks beside its index, of which
    faiss tells on stdout.
    """
    index = None
    with contextlib.suppress(RuntimeError):
        index = faiss.read_index(str(folder / LISTS), faiss.IO_FLAG_READ_ONLY)
    if index is not None and faiss.downcast_InvertedLists(index.invlists).filename == str(folder / DATA):
        return index
    with _stdout_on_stderr():
        return faiss.read_index(
            str(folder / LISTS), faiss.IO_FLAG_READ_ONLY | faiss.IO_FLAG_ONDISK_SAME_DIR
        )


@contextlib.contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    """faiss tells the size of every file on stdout, which is for results."""
    flush = ctypes.CDLL(None).fflush  # of C's own buffers
    sys.stdout.flush()
    flush(None)
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
        flush(None)
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def read_empty(folder: Path) -> Any:
    """The trained lists of a folder, without names."""
    return faiss.read_index(str(folder / EMPTY))


class MappedLists:
    """The lists of a folder, mapped; opened in milliseconds whatever their size.

    Args:
        alive: `[U]`, which numbers may be found; None for all.

    Raises:
        RuntimeError: a file that faiss cannot read.
        ValueError: lists of another dimension or number of names.
    """

    def __init__(self, folder: Path, dim: int, names: int, alive: NDArray[np.bool_] | None) -> None:
        index = _mapped(folder)
        if not isinstance(index, faiss.IndexIVFScalarQuantizer) or (index.d, index.ntotal) != (dim, names):
            raise ValueError(f"lists of {index.ntotal} x {index.d}, expected {names} x {dim}")
        self._index = index
        # The selector points into this array.
        self._alive = None if alive is None else np.packbits(alive, bitorder="little")
        self._selector = None if self._alive is None else faiss.IDSelectorBitmap(self._alive)
        self.nprobe = probes(index.nlist)

    def search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        """Scores and numbers `[n, k]` of the nearest names; -1 where there are fewer."""
        settings = faiss.SearchParametersIVF(nprobe=self.nprobe, sel=self._selector)
        scores, numbers = self._index.search(queries, k, params=settings)
        return scores, numbers
