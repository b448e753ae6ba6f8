"""Each question is read once a search: what an intent model makes of it serves every hop, and the judge."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from vispath_lit.types import Query


class Rowed(Protocol):
    """Something with a row a question."""

    def select(self, rows: Tensor) -> Self:
        """The questions at `rows`, `[n]` long."""
        ...


R = TypeVar("R", bound=Rowed)


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    """What a reader made of some queries; they are kept, as an identity is one's own only in its lifetime."""

    queries: Sequence[Query]
    row: dict[int, int]
    made: Any


# By reader. A thread's own, so that searches side by side do not meet.
_known: ContextVar[dict[int, _Known] | None] = ContextVar("known", default=None)


@contextmanager
def reading_once() -> Iterator[None]:
    """Within it `once` remembers; afterwards all is forgotten, so that no reading outlives its weights."""
    token = _known.set({})
    try:
        yield
    finally:
        _known.reset(token)


def once(reader: object, read: Callable[[Sequence[Query]], R], queries: Sequence[Query]) -> R:
    """`read(queries)`, or the rows of what the same reader made of these very objects before."""
    kept = _known.get()
    if kept is None:
        return read(queries)
    found = kept.get(id(reader))
    if found is None or not all(id(query) in found.row for query in queries):
        row = {id(query): place for place, query in enumerate(queries)}
        kept[id(reader)] = found = _Known(list(queries), row, read(queries))
    rows = [found.row[id(query)] for query in queries]
    everything: R = found.made
    if rows == list(range(len(found.queries))):
        return everything
    return everything.select(torch.tensor(rows, dtype=torch.long))
