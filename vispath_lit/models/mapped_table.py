"""A table computed once and kept as a memory-mapped file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from vispath_lit.encoders.batching import track_if_slow
from vispath_lit.whole import NO_ARRAY, whole_file

Kept = Literal["float16", "int8"]


def mapped_table(
    file: Path,
    shape: tuple[int, int],
    rows: Callable[[slice], NDArray[Any]],
    chunk: int,
    doing: str,
    kept: Kept = "float16",
) -> NDArray[Any]:
    """The table in `file`; made where it is missing, cut short or another table.

    Args:
        kept: `int8` keeps what `unit_bytes` makes of the rows, half the space.
        rows: gives the rows of a slice of at most `chunk`.
        doing: what the progress bar says while they are made.
    """
    dtype = np.dtype(kept)
    if (table := _read(file, shape, dtype)) is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of several processes that need it one works and the others wait for its file.
        with FileLock(file.with_suffix(".lock")):
            if _read(file, shape, dtype) is None:
                _write(file, shape, rows, chunk, doing, dtype)
        table = _read(file, shape, dtype)
    assert table is not None, f"{file}: written as {shape}, reads otherwise"
    return table


def unit_bytes(vectors: NDArray[Any]) -> NDArray[np.int8]:
    """`[n, d]` bytes that point where `[n, d]` vectors do; their length says nothing."""
    most = np.abs(vectors).max(axis=1, keepdims=True)
    scaled: NDArray[np.int8] = np.rint(vectors * (127 / np.maximum(most, 1e-12))).astype(np.int8)
    return scaled


def unit_floats(rows: NDArray[Any]) -> NDArray[np.float32]:
    """`[n, d]` rows of a table as float32: those of bytes at unit length, others as they are."""
    floats = rows.astype(np.float32)
    if rows.dtype == np.int8:
        floats /= np.maximum(np.linalg.norm(floats, axis=1, keepdims=True), 1e-12)
    return floats


def _write(
    file: Path,
    shape: tuple[int, int],
    rows: Callable[[slice], NDArray[Any]],
    chunk: int,
    doing: str,
    dtype: np.dtype[Any],
) -> None:
    """Makes every row, a chunk at a time."""
    with whole_file(file) as partial:
        table = np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape)
        for start in track_if_slow(range(0, shape[0], chunk), doing):
            some = slice(start, min(start + chunk, shape[0]))
            table[some] = unit_bytes(rows(some)) if dtype == np.int8 else rows(some)
        table.flush()
        del table


def _read(file: Path, shape: tuple[int, int], dtype: np.dtype[Any]) -> NDArray[Any] | None:
    """The mapped table, None where it cannot be used; private pages, as torch wants writable ones."""
    try:
        table: NDArray[Any] = np.load(file, mmap_mode="c", allow_pickle=False)
    except (FileNotFoundError, *NO_ARRAY):
        return None
    return table.view(np.ndarray) if table.shape == shape and table.dtype == dtype else None
