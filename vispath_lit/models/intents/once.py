"""Each question is read once a search: what an intent model makes of it serves every hop, and the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from vispath_lit.models.remembered import shelf
from vispath_lit.types import Query


class Rowed(Protocol):
    """Something with a row a question."""

    def select(self, rows: Tensor) -> Self:
        """The questions at `rows`, `[n]` long."""
        ...


R = TypeVar("R", bound=Rowed)


def once(reader: object, read: Callable[[Sequence[Query]], R], queries: Sequence[Query]) -> R:
    """`read(queries)`, or the rows of what the same reader made of these very objects before."""
    kept = shelf(reader, "reading")
    if kept is None:
        return read(queries)
    if not all(id(query) in kept.get("row", {}) for query in queries):
        kept["made"] = read(queries)
        kept["row"] = {id(query): place for place, query in enumerate(queries)}
        kept["queries"] = list(queries)  # an identity is one's own only while its object lives
    rows = [kept["row"][id(query)] for query in queries]
    everything: R = kept["made"]
    if rows == list(range(len(kept["queries"]))):
        return everything
    return everything.select(torch.tensor(rows, dtype=torch.long))
