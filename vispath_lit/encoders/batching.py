"""Batches of texts of about equal length, and a bar for work that turns out to be long."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from vispath_lit.progress import track

T = TypeVar("T")
MIN_TOKENS = 1024  # below it a batch is too small for padding to matter more than one call more


def token_batches(lengths: NDArray[np.int64], budget: int, waste: float = 0.1) -> list[NDArray[np.int64]]:
    """Positions of texts in batches of at most `budget` padded tokens, longest first (ties by position).

    A batch ends early where one more text would leave more than `waste` of it padding.
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[NDArray[np.int64]] = []
    start, used = 0, 0
    for i, length in enumerate(lengths[order].tolist()):
        width = int(lengths[order[start]])
        padded = width * (i - start + 1)
        padding = padded - used - length
        if i > start and (padded > budget or (padded > MIN_TOKENS and padding > waste * padded)):
            batches.append(order[start:i])
            start, used = i, 0
        used += length
    return [*batches, order[start:]] if len(order) else []


def track_if_slow(items: Sequence[T], description: str, patience: float = 2.0) -> Iterator[T]:
    """Yields `items`; those that are left after `patience` seconds go under a progress bar."""
    begin = time.monotonic()
    for i, item in enumerate(items):
        if time.monotonic() - begin > patience:
            yield from track(items[i:], description)
            return
        yield item
