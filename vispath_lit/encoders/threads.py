"""The number of torch threads for a stretch of work."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Sets torch's threads to `count` and back; None changes nothing."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
