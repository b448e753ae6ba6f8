"""The staged tables as one graph: ids numbered, texts gathered, in the form that a store is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.errors import DataError
from vispath_lit.kg.folder import EntityTable, ImageTable, RelationTable, TripleTable
from vispath_lit.kg.images import check_image, is_there
from vispath_lit.kg.staging.importer import TEXTS, Importer
from vispath_lit.kg.staging.lines import mask
from vispath_lit.kg.staging.stage import Stage
from vispath_lit.kg.staging.tally import Tally
from vispath_lit.kg.staging.vocabulary import Vocabulary
from vispath_lit.progress import track

Ints = NDArray[np.int32]


@dataclass(slots=True)
class StagedGraph:
    """Reads a filled stage; entities keep the order of their table, those of triples alone come after.

    Attributes:
        tally: of this part of the work; duplicates, dangling pictures and the like.
    """

    stage: Stage
    importer: Importer
    tally: Tally
    _entity_ids: Vocabulary = field(default_factory=Vocabulary)
    _relation_ids: Vocabulary = field(default_factory=Vocabulary)
    _edges: TripleTable | None = None
    _named: int = 0
    _new_index: Ints | None = None

    def entities(self) -> EntityTable:
        """Raises DataError where an id repeats (unless such rows are skipped), or there is no triple."""
        self._number()
        ids = self._kept(self._entity_ids.texts())
        label, aliases = self._listed("entities")
        own = self._attributes(self._entity_ids, ("label", "alias", "type", "description"))
        self._entity_ids = Vocabulary()  # No longer needed, and large.
        label = _first(label, own.single["label"])
        aliases = _merged(aliases, *own.many) if len(own.many[0]) else aliases
        return EntityTable(
            id=ids,
            label=self._filled(ids, self._kept(label)),
            aliases=self._kept(aliases),
            type=self._kept(own.single["type"]),
            description=self._kept(own.single["description"]),
        )

    def relations(self) -> RelationTable:
        ids = self._relation_ids.texts()
        label, _ = self._listed("relations")
        label = _first(label, self._attributes(self._relation_ids, ("label",)).single["label"])
        return RelationTable(id=ids, label=self._filled(ids, label), inverse_label=_empty(len(ids)))

    def triples(self, entity_ids: Any, relation_ids: Any) -> TripleTable:
        assert self._edges is not None, "entities come first"
        edges, self._edges = self._edges, None
        return edges

    def images(self, entity_ids: Any) -> ImageTable:
        """Dangling and unreadable pictures are faults."""
        entity: list[Ints] = []
        files: list[Path] = []
        kinds: list[str] = []
        known: Vocabulary | None = None
        for shard in self.stage.shards("images"):
            if known is None:
                known = Vocabulary()
                known.add(entity_ids)
            (ids, paths, kind), lines, source = shard.read("entity", "file", "kind")
            index = known.find(ids)
            unknown = index < 0
            # A listing may cover more entities than the graph: no fault, but counted.
            self.tally.noted["images of entities outside the graph"] += int(unknown.sum())
            names = [Path(path) for path in paths.to_pylist()]
            good = ~unknown
            for row in track(np.flatnonzero(good).tolist(), "pictures"):
                if fault := _image_fault(names[row]):
                    good[row] = False
                    self.tally.skip(source, int(lines[row]), *fault)
            rows = np.flatnonzero(good)
            entity.append(index[rows].astype(np.int32))
            files += [names[row] for row in rows]
            kinds += [str(kind[row].as_py()) for row in rows.tolist()]
        return ImageTable(np.concatenate([np.zeros(0, dtype=np.int32), *entity]), files, kinds)

    def _number(self) -> None:
        """Ids to indices, triples to integers; entities in no triple are dropped where that is wanted."""
        for table, known in (("entities", self._entity_ids), ("relations", self._relation_ids)):
            self._number_listed(table, known)
        self._named = len(self._entity_ids)
        if self.importer.keep_unlinked:
            self._number_described()
        parts: list[tuple[Ints, Ints, Ints]] = []
        for shard in track(list(self.stage.shards("triples")), "numbering triples"):
            (subject, relation, tail), _, _ = shard.read("subject", "relation", "object")
            ends = self._entity_ids.add(_interleaved(subject, tail))
            parts.append((ends[0::2], self._relation_ids.add(relation), ends[1::2]))
        if not parts:
            raise DataError(f"{self.stage.target}: no triple was found; {_seen(self.stage.tally)}")
        if self._named:
            self.tally.noted["entities without a row of their own"] += len(self._entity_ids) - self._named
        head, relation_index, tail_index = (np.concatenate(column) for column in zip(*parts, strict=True))
        del parts
        if not self.importer.keep_unlinked:
            used = np.zeros(len(self._entity_ids), dtype=bool)
            used[head] = True
            used[tail_index] = True
            if not used.all():
                self.tally.noted["entities in no triple, left out"] += int((~used).sum())
                self._new_index = np.where(used, np.cumsum(used, dtype=np.int32) - 1, -1).astype(np.int32)
                head, tail_index = self._new_index[head], self._new_index[tail_index]
        self._edges = TripleTable(head, relation_index, tail_index)

    def _number_listed(self, table: Any, known: Vocabulary) -> None:
        for shard in self.stage.shards(table):
            (ids,), lines, source = shard.read("id")
            before = len(known)
            again = _repeats(known.add(ids), before)
            if again.any():
                self.tally.skip_rows(
                    source,
                    lines,
                    again,
                    f"repeated id in {table}",
                    partial(_text_at, ids),
                )

    def _number_described(self) -> None:
        """Entities that only have a text; a relation is none."""
        for shard in self.stage.shards("attributes"):
            (ids,), _, _ = shard.read("id")
            self._entity_ids.add(ids.filter(pa.array(self._relation_ids.find(ids) < 0)))

    def _listed(self, table: Any) -> tuple[Any, Any]:
        """Labels and alias lists of all ids; those without a row of their own have empty ones."""
        known = self._entity_ids if table == "entities" else self._relation_ids
        names = ("id", "label", "aliases") if table == "entities" else ("id", "label")
        seen = 0
        label, aliases = [], []
        for shard in self.stage.shards(table):
            columns, _, _ = shard.read(*names)
            index = known.find(columns[0])
            new = _firsts(index, seen)
            seen += int(new.sum())
            label.append(_filter(columns[1], new))
            if table == "entities":
                aliases.append(_filter(columns[2], new))
        rest = len(known) - seen
        label.append(_empty(rest))
        if rest and table == "entities":
            aliases.append(_no_lists(rest))
        label = _joined(label)  # The parts go before the other column is joined.
        return label, _joined(aliases or [_no_lists(0)])

    def _attributes(self, known: Vocabulary, names: tuple[str, ...]) -> _Attributes:
        found = _Attributes(len(known), names)
        for shard in self.stage.shards("attributes"):
            (ids, name, value), _, _ = shard.read("id", "name", "value")
            found.take(known.find(ids), name, value)
        return found.finish()

    def _filled(self, ids: Any, label: Any) -> Any:
        """Labels, with those that the format gives to what its source does not name."""
        empty = mask(pc.equal(pc.utf8_trim_whitespace(label), ""))
        if not empty.any():
            return label
        given = self.importer.labels(ids.filter(pa.array(empty)))
        return pc.replace_with_mask(label, pa.array(empty), given.cast(pa.large_string()))

    def _kept(self, column: Any) -> Any:
        return column if self._new_index is None else _filter(column, self._new_index >= 0)


@dataclass(slots=True)
class _Attributes:
    """Texts by index: the first of each name, and all aliases.

    Attributes:
        single: `[n]` columns.
        many: index, `[m]`, and text, `[m]`, of aliases.
    """

    size: int
    names: tuple[str, ...]
    single: dict[str, Any] = field(default_factory=dict)
    many: tuple[Any, Any] = (np.zeros(0, dtype=np.int32), None)
    _place: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _values: dict[str, list[Any]] = field(default_factory=dict)
    _alias: list[tuple[Ints, Any]] = field(default_factory=list)

    def take(self, index: Ints, name: Any, value: Any) -> None:
        for wanted in self.names:
            rows = np.flatnonzero(mask(pc.equal(name, wanted)) & (index >= 0))
            if not len(rows):
                continue
            if wanted == "alias":
                self._alias.append((index[rows], value.take(pa.array(rows))))
                continue
            place = self._place.setdefault(wanted, np.full(self.size, -1, dtype=np.int64))
            values = self._values.setdefault(wanted, [])
            start = sum(len(part) for part in values)
            entity, first = np.unique(index[rows], return_index=True)
            new = place[entity] < 0
            entity, first = entity[new], first[new]
            place[entity] = start + np.arange(len(entity))
            values.append(value.take(pa.array(rows[first])))

    def finish(self) -> _Attributes:
        for name in self.names:
            if name != "alias":
                self.single[name] = self._column(name)
        if self._alias:
            self.many = (
                np.concatenate([index for index, _ in self._alias]),
                _joined([texts for _, texts in self._alias]),
            )
        return self

    def _column(self, name: str) -> Any:
        if name not in self._place:
            return _empty(self.size)
        place = self._place[name]
        texts = _joined(self._values.pop(name))
        return pc.fill_null(texts.take(pa.array(place, mask=place < 0)), "")


def _text_at(column: Any, row: int) -> str:
    return str(column[row].as_py()[:80])


def _interleaved(first: Any, second: Any) -> Any:
    """`[2n]`: the columns' texts in turn, so that they are numbered in reading order."""
    n = len(first)
    order = np.arange(2 * n, dtype=np.int64).reshape(2, n).T.ravel()
    return pa.concat_arrays([first, second]).take(pa.array(order))


def _repeats(index: Ints, before: int) -> NDArray[np.bool_]:
    """Rows of ids that were known before, or stand higher up among the same rows."""
    return ~_firsts(index, before)


def _firsts(index: Ints, before: int) -> NDArray[np.bool_]:
    """Rows whose index is above all earlier ones: ids are numbered as they appear."""
    highest = np.maximum.accumulate(np.concatenate([np.array([before - 1], dtype=np.int32), index]))
    return index > highest[:-1]


def _first(texts: Any, others: Any) -> Any:
    """`texts`, with `others` where they are empty."""
    return pc.if_else(pc.equal(texts, ""), others, texts)


def _merged(lists: Any, index: Ints, texts: Any) -> Any:
    """Alias lists with further aliases behind them, each once."""
    count = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), dtype=np.int64)
    owner = np.concatenate([np.repeat(np.arange(len(lists), dtype=np.int32), count), index])
    every = _joined([lists.flatten(), texts])
    order = np.argsort(owner, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(lists)))]).astype(np.int64)
    merged = pa.LargeListArray.from_arrays(pa.array(offsets), every.take(pa.array(order)))
    unique = pl.Series(pl.from_arrow(merged)).list.unique(maintain_order=True)
    return unique.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(TEXTS)


def _image_fault(file: Path) -> tuple[str, str] | None:
    if not is_there(file):
        return "picture that does not exist", str(file)
    try:
        check_image(file)
    except DataError as error:
        return "picture that cannot be read", str(error)
    return None


def _seen(tally: Tally) -> str:
    counts = {**tally.read, **{f"skipped: {key}": count for key, count in tally.skipped.items()}}
    listed = "; ".join(f"{key} {count}" for key, count in counts.items()) or "nothing at all"
    return f"read were {listed}. Is it the right format, and are the sources the right files?"


def _filter(column: Any, keep: NDArray[np.bool_]) -> Any:
    return column if keep.all() else column.filter(pa.array(keep))


def _empty(length: int) -> Any:
    return pa.repeat(pa.scalar("", type=pa.large_string()), length)


def _no_lists(length: int) -> Any:
    items = pa.array([], type=pa.large_string())
    return pa.LargeListArray.from_arrays(pa.array(np.zeros(length + 1, dtype=np.int64)), items)


def _joined(parts: list[Any]) -> Any:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
