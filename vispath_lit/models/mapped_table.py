"""A table computed once and kept as a memory-mapped file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from vispath_lit.encoders.batching import track_if_slow


def mapped_table(
    file: Path, shape: tuple[int, int], rows: Callable[[slice], NDArray[Any]], chunk: int, doing: str
) -> NDArray[Any]:
    """The float16 table in `file`; made where it is missing, cut short or another table.

    Args:
        rows: gives the rows of a slice of at most `chunk`.
        doing: what the progress bar says while they are made.
    """
    if (table := _read(file, shape)) is None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of several processes that need it one works and the others wait for its file.
        with FileLock(file.with_suffix(".lock")):
            if _read(file, shape) is None:
                _write(file, shape, rows, chunk, doing)
        table = _read(file, shape)
    assert table is not None, f"{file}: written as {shape}, reads otherwise"
    return table


def _write(
    file: Path, shape: tuple[int, int], rows: Callable[[slice], NDArray[Any]], chunk: int, doing: str
) -> None:
    """Makes every row, beside the target, then renames."""
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    try:
        table = np.lib.format.open_memmap(temporary, mode="w+", dtype=np.float16, shape=shape)
        for start in track_if_slow(range(0, shape[0], chunk), doing):
            some = slice(start, min(start + chunk, shape[0]))
            table[some] = rows(some)
        table.flush()
        del table
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)


def _read(file: Path, shape: tuple[int, int]) -> NDArray[Any] | None:
    """The mapped table, None where it cannot be used; private pages, as torch wants writable ones."""
    try:
        table: NDArray[Any] = np.load(file, mmap_mode="c", allow_pickle=False)
    except (FileNotFoundError, ValueError, EOFError):
        return None
    return table.view(np.ndarray) if table.shape == shape and table.dtype == np.float16 else None
