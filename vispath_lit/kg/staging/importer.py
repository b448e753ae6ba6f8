"""The seam of importers: a format cuts its sources into units of work, and makes tables of each.

A new format is one new file in `kg/importers/`: a frozen dataclass `Format` whose fields are its options
and whose `units` yields the work. Command line, counting, resuming, store and folder come from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vispath_lit.kg.staging.tally import Tally

TableName = Literal["entities", "relations", "triples", "attributes", "images"]
TEXTS = pa.large_list(pa.large_string())
COLUMNS: dict[str, dict[str, Any]] = {
    # One row an entity; an empty label stands for none.
    "entities": {"id": pa.large_string(), "label": pa.large_string(), "aliases": TEXTS},
    "relations": {"id": pa.large_string(), "label": pa.large_string()},
    "triples": {"subject": pa.large_string(), "relation": pa.large_string(), "object": pa.large_string()},
    # A text about an entity or relation: `name` is label, alias, type or description. Where one value is
    # wanted the first one counts.
    "attributes": {"id": pa.large_string(), "name": pa.large_string(), "value": pa.large_string()},
    # `file` is absolute, or relative to the working directory.
    "images": {"entity": pa.large_string(), "file": pa.large_string(), "kind": pa.large_string()},
}


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one table.

    Attributes:
        columns: Arrow arrays as `COLUMNS` says, in its order.
        source, lines: where the rows stand, `[n]`; for messages.
    """

    table: TableName
    columns: list[Any]
    source: str
    lines: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a source that is parsed by itself, so that a stopped import goes on with the next one.

    Attributes:
        source: shown as progress.
        parse: makes the unit's batches and counts what it leaves out.
    """

    source: str
    parse: Callable[[Tally], Iterable[Batch]]


class Importer(Protocol):
    """A format with its sources and options; equal ones yield equal units in equal order.

    Attributes:
        keep_unlinked: whether entities that no triple mentions are kept.
    """

    @property
    def keep_unlinked(self) -> bool: ...

    def units(self) -> Iterator[Unit]:
        """The work, in order. Making a unit may read its bytes; parsing waits until `parse` is called."""
        ...

    def labels(self, ids: Any) -> Any:
        """Labels of entities or relations that the source does not name, from a column of their ids."""
        ...
