"""Batches of texts of about equal length, and a bar for work that turns out to be long."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vispath_lit.progress import track

T = TypeVar("T")
STEP = 8  # tokens; finer, batches get too small, coarser, padding too long


def padded_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """`[n]` lengths rounded up to the next multiple of `STEP`."""
    return -(-lengths // STEP) * STEP


def token_batches(lengths: NDArray[np.int64], budget: int) -> list[NDArray[np.int64]]:
    """Positions of texts in batches of one padded length and at most `budget` padded tokens, longest first.

    As the padding depends on the text alone, its vector has the same bits in every batch: what else is
    embedded, and in which order, never decides a near-tie.
    """
    padded = padded_lengths(lengths)
    order = np.argsort(-padded, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(padded[order])) + 1) if len(order) else []
    sizes = [max(budget // int(padded[run[0]]), 1) for run in runs]
    return [
        run[low : low + size]
        for run, size in zip(runs, sizes, strict=True)
        for low in range(0, len(run), size)
    ]


def track_if_slow(items: Sequence[T], description: str, patience: float = 2.0) -> Iterator[T]:
    """Yields `items`; those that are left after `patience` seconds go under a progress bar."""
    begin = time.monotonic()
    for i, item in enumerate(items):
        if time.monotonic() - begin > patience:
            yield from track(items[i:], description)
            return
        yield item
