"""How many torch threads a stretch of work gets, and how it shares them."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


@contextlib.contextmanager
def limited_threads(count: int | None) -> Iterator[None]:
    """Sets torch's threads to `count` and back; None changes nothing."""
    if count is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def side_by_side(function: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[R]:
    """`function` of every item, in order, by `workers` threads that give torch one thread each.

    Two threads on one small matrix mostly wait for each other; two such pieces of work side by side do not.
    """
    if workers == 1 or len(items) < 2:
        return map(function, items)
    return _pool(workers).map(function, items)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    before = torch.get_num_threads()

    def begin() -> None:
        torch.get_num_threads()  # else its first product would take over the last setting
        torch.set_num_threads(1)

    pool = ThreadPoolExecutor(workers, "side-by-side", initializer=begin)
    started = threading.Barrier(workers + 1)
    for _ in range(workers):
        pool.submit(started.wait)
    started.wait()
    torch.set_num_threads(before)  # a worker's setting is also that of threads which begin after it
    return pool


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork
