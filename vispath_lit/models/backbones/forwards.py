"""How often a backbone has read each question: counted where it happens, for the cost of a search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from vispath_lit.types import Query

# Forwards by the identity of their query. A thread's own, so that searches side by side do not meet.
_forwards: ContextVar[Counter[int] | None] = ContextVar("forwards", default=None)


@contextmanager
def counting() -> Iterator[Counter[int]]:
    """Within it forwards are counted by `id(query)`; the queries live at least as long."""
    found: Counter[int] = Counter()
    token = _forwards.set(found)
    try:
        yield found
    finally:
        _forwards.reset(token)


def count_forward(queries: Sequence[Query]) -> None:
    """A backbone has read these; several rows of one forward are a forward of each question."""
    if (counter := _forwards.get()) is not None:
        counter.update({id(query) for query in queries})
