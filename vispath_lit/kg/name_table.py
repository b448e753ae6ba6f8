"""The distinct names of a graph by number, and who bears each: arrays that a name index maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.encoders.cache import content_keys
from vispath_lit.encoders.segment import Keys
from vispath_lit.kg.lookup import SLICE
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track

GONE = -1  # The place of a name that an index still holds and the graph no longer does.
Ints = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class NameTable:
    """U names, numbered in order of first appearance: all labels, then all aliases.

    Attributes:
        keys: `[U, 2]` uint64, a 128-bit hash of each name's bytes.
        place: `[U]` int32, where its text stands among the graph's labels and aliases; GONE where nowhere.
        indptr: `[U + 1]` int32 into `owners`.
        owners: `[M]` int32, the entities that bear each name, ascending.
    """

    keys: Keys
    place: Ints
    indptr: Ints
    owners: Ints

    def __len__(self) -> int:
        return len(self.place)

    def owners_of(self, number: int) -> list[int]:
        """The entities that bear a name."""
        low, high = self.indptr[number : number + 2].tolist()
        found: list[int] = self.owners[low:high].tolist()
        return found


def name_table(graph: KnowledgeGraph, aliases: bool, known: Keys | None = None) -> NameTable:
    """All names of a graph, hashed a slice at a time.

    Args:
        aliases: whether aliases count too.
        known: `[K, 2]` distinct keys of an earlier table; those names keep their numbers, new ones follow.
    """
    before = np.zeros((0, 2), dtype=np.uint64) if known is None else np.asarray(known)
    hashed = track(_hashed(graph, aliases), "reading names") if _many(graph) else _hashed(graph, aliases)
    keys = np.concatenate([before, *hashed])
    number, first = _numbered(keys)
    number, place = number[len(before) :], first.copy()
    seen = np.bincount(number, minlength=len(first)) > 0
    # A known name's first appearance is its old key; its text stands where this graph has it first.
    again, position = np.unique(number, return_index=True)
    place[again] = position
    place[~seen] = GONE
    entities = _bearers(graph, aliases)
    pairs = np.unique(number * graph.num_entities + entities) if len(number) else number
    indptr = np.zeros(len(first) + 1, dtype=np.int64)
    np.cumsum(np.bincount(pairs // max(1, graph.num_entities), minlength=len(first)), out=indptr[1:])
    owners = pairs % max(1, graph.num_entities)
    return NameTable(keys[first], *(array.astype(np.int32) for array in (place, indptr, owners)))


def positions(keys: Keys, known: Keys) -> Ints:
    """`[n]`: where each of distinct keys stands among `[K, 2]` distinct known ones; -1 where it does not."""
    number, _ = _numbered(np.concatenate([known, keys]))
    found = number[len(known) :]
    return np.where(found < len(known), found, -1)


class NameTexts:
    """Reads names by their place, from the graph's mapped columns."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._count = graph.num_entities
        self._columns = (graph.column("label"), graph.column("aliases").flatten())

    def __getitem__(self, place: int) -> str:
        alias = place >= self._count
        return str(self._columns[alias][int(place) - alias * self._count].as_py())

    def many(self, places: Ints) -> list[str]:
        """The names at `[n]` places."""
        of_alias = places >= self._count
        texts = np.empty(len(places), dtype=object)
        for alias, column in enumerate(self._columns):
            rows = np.flatnonzero(of_alias == bool(alias))
            texts[rows] = column.take(pa.array(places[rows] - alias * self._count)).to_pylist()
        found: list[str] = texts.tolist()
        return found


def arrays(table: NameTable) -> dict[str, Ints]:
    """The arrays of a table by file name."""
    return {name: getattr(table, name) for name in NameTable.__slots__}


def map_table(folder: Path, entities: int) -> NameTable:
    """Maps a table from a folder.

    Raises:
        ValueError: arrays that do not belong together, or entities that the graph does not have.
        OSError: a file that is missing.
    """
    found = {
        name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False).view(np.ndarray)
        for name in NameTable.__slots__
    }
    table = NameTable(**found)
    kinds = [(table.keys, "u8"), (table.place, "i4"), (table.indptr, "i4"), (table.owners, "i4")]
    if any(array.dtype != np.dtype(kind) for array, kind in kinds):
        raise ValueError("arrays of another type")
    if table.keys.shape != (len(table), 2) or table.indptr.shape != (len(table) + 1,):
        raise ValueError("arrays of different lengths")
    if table.indptr[0] != 0 or table.indptr[-1] != len(table.owners):
        raise ValueError("a row index that does not cover the owners")
    if len(table.owners) and not 0 <= int(table.owners.min()) <= int(table.owners.max()) < entities:
        raise ValueError("owners that the graph does not hold")
    return table


def _many(graph: KnowledgeGraph) -> bool:
    return graph.num_entities > SLICE


def _hashed(graph: KnowledgeGraph, aliases: bool) -> Iterator[Keys]:
    columns = [graph.column("label")] + [graph.column("aliases").flatten()] * aliases
    for column in columns:
        for start in range(0, len(column), SLICE):
            yield content_keys(text.encode() for text in column.slice(start, SLICE).to_pylist())


def _bearers(graph: KnowledgeGraph, aliases: bool) -> Ints:
    """The entity of every label and, where asked, of every alias behind them."""
    own = np.arange(graph.num_entities, dtype=np.int64)
    if not aliases:
        return own
    lengths = pc.list_value_length(graph.column("aliases"))
    count = np.asarray(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)
    return np.concatenate([own, np.repeat(own, count)])


def _numbered(keys: Keys) -> tuple[Ints, Ints]:
    """The number of each key, in order of first appearance, and where each number appears first."""
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: of equal keys the first one leads
    ordered = keys[order]
    new = np.ones(len(keys), dtype=bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    leaders = order[new]
    rank = np.empty(len(leaders), dtype=np.int64)
    rank[np.argsort(leaders, kind="stable")] = np.arange(len(leaders))
    number = np.empty(len(keys), dtype=np.int64)
    number[order] = rank[np.cumsum(new) - 1]
    return number, np.sort(leaders)
