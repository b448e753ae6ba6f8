"""What follows from the weights and the questions alone is made once a search, or once a training walk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import torch

T = TypeVar("T")
# By owner and name. A thread's own, so that searches side by side do not meet.
_shelves: ContextVar[dict[tuple[int, str], Any] | None] = ContextVar("shelves", default=None)


@contextmanager
def remembering() -> Iterator[None]:
    """Within it things are made once; no weight may change, and its owners live at least as long."""
    token = _shelves.set({})
    try:
        yield
    finally:
        _shelves.reset(token)


def shelf(owner: object, name: str) -> dict[str, Any] | None:
    """What `owner` keeps under `name` while something remembers; None where nothing does."""
    shelves = _shelves.get()
    return None if shelves is None else shelves.setdefault((id(owner), name), {})


def made_once(owner: object, name: str, make: Callable[[], T]) -> T:
    """`make()`, or what it gave before with the same gradients and the same precision."""
    kept = shelf(owner, name)
    if kept is None:
        return make()
    mode = f"{torch.is_grad_enabled()} {[torch.is_autocast_enabled(device) for device in ('cpu', 'cuda')]}"
    if mode not in kept:
        kept[mode] = make()
    return cast(T, kept[mode])
