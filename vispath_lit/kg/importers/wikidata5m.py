r"""Wikidata5M (Wang et al., 2021): the published files, as they come or unpacked.

    wikidata5m_transductive.tar.gz  (or _inductive, _all_triplet.txt.gz)   Q1<TAB>P2<TAB>Q3
    wikidata5m_alias.tar.gz         wikidata5m_entity.txt, wikidata5m_relation.txt   id<TAB>name<TAB>name...
    wikidata5m_text.txt.gz          Q1<TAB>text, in which tabs may occur

Files are told apart by their first part: names by "entity" and "relation", the corpus by "text", all others
are triples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import TEXTS, Batch, Unit
from vispath_lit.kg.staging.lines import fields, reject_empty, reject_inverse_marks, whole_lines
from vispath_lit.kg.staging.pictures import picture_units
from vispath_lit.kg.staging.streams import Block, base_name, walk
from vispath_lit.kg.staging.tally import Tally

Choice = Literal["first", "last", "shortest", "longest"]
SPLITS = ("all", "train", "valid", "test")


@dataclass(frozen=True)
class Format:
    """Wikidata5M: triples, names, corpus; as published, no unpacking needed."""

    sources: tuple[Path, ...] = field(metadata={"help": "The published files, or a folder that holds them."})
    label: Choice = field(
        default="first",
        metadata={
            "help": "Which of an entity's names is its label; the others are aliases. One of first, last, "
            "shortest, longest."
        },
    )
    split: str = field(default="all", metadata={"help": "Triples of one split: train, valid, test, or all."})
    description: int = field(
        default=300, metadata={"help": "Characters of an entity's corpus text that are kept; 0 for none."}
    )
    images: Path | None = field(default=None, metadata={"help": "A listing of pictures: Q1<TAB>file."})
    pictures: Path | None = field(
        default=None, metadata={"help": "The folder of the listed files; default: the listing's own."}
    )
    kind: str = field(default="photo", metadata={"help": "The kind of these pictures."})
    keep_unlinked: bool = field(
        default=False, metadata={"help": "Keep named entities that no triple mentions."}
    )

    def __post_init__(self) -> None:
        if self.label not in ("first", "last", "shortest", "longest"):
            raise DataError(f"label is {self.label!r}; allowed are first, last, shortest and longest")
        if self.split not in SPLITS:
            raise DataError(f"split is {self.split!r}; allowed are {', '.join(SPLITS)}")
        if self.description < 0:
            raise DataError(f"description is {self.description}; expected characters, or 0 for none")

    def units(self) -> Iterator[Unit]:
        for source in self.sources:
            for member in walk(source):
                if make := self._reader(base_name(member.name)):
                    for block in member.blocks():
                        yield Unit(block.source, partial(make, block))
        if self.images is not None:
            yield from picture_units(self.images, self.pictures or self.images.parent, self.kind)

    def labels(self, ids: Any) -> Any:
        return ids

    def _reader(self, name: str) -> Callable[[Block, Tally], Iterator[Batch]] | None:
        if name.startswith("."):
            return None
        if "entity" in name or "relation" in name:
            return self._entities if "entity" in name else self._relations
        if "text" in name:
            return self._texts if self.description else None
        if self.split != "all" and self.split not in name:
            return None
        return _triples

    def _entities(self, block: Block, tally: Tally) -> Iterator[Batch]:
        rows = reject_empty(whole_lines(block, tally), ("line",), tally)
        ids, label, others = _names(rows.columns[0], self.label)
        tally.noted["entities without a name"] += int(pc.sum(pc.equal(label, "")).as_py() or 0)
        yield Batch("entities", [ids, label, others], rows.source, rows.lines)

    def _relations(self, block: Block, tally: Tally) -> Iterator[Batch]:
        rows = reject_empty(whole_lines(block, tally), ("line",), tally)
        rows = reject_inverse_marks(rows, 0, tally)
        ids, label, _ = _names(rows.columns[0], self.label)
        yield Batch("relations", [ids, label], rows.source, rows.lines)

    def _texts(self, block: Block, tally: Tally) -> Iterator[Batch]:
        rows = whole_lines(block, tally)
        parts = pl.Series(pl.from_arrow(rows.columns[0]), dtype=pl.String).str.splitn("\t", 2).struct.unnest()
        texts = parts["field_1"].fill_null("").str.slice(0, self.description).str.strip_chars()
        name = pa.repeat(pa.scalar("description", type=pa.large_string()), len(texts))
        yield Batch("attributes", [_arrow(parts["field_0"]), name, _arrow(texts)], rows.source, rows.lines)


def _triples(block: Block, tally: Tally) -> Iterator[Batch]:
    names = ("subject", "relation", "object")
    rows = reject_inverse_marks(reject_empty(fields(block, 3, tally), names, tally), 1, tally)
    yield Batch("triples", rows.columns, rows.source, rows.lines)


def _names(lines: Any, choice: Choice) -> tuple[Any, Any, Any]:
    """Id, label and other names of lines `id<TAB>name<TAB>name...`; empty and repeated names are dropped."""
    parts = pl.Series(pl.from_arrow(lines), dtype=pl.String).str.splitn("\t", 2).struct.unnest()
    names = parts["field_1"].fill_null("").str.split("\t")
    names = names.list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
    names = names.list.unique(maintain_order=True)
    if choice == "first":  # The default, and much faster than the general way.
        label = names.list.first().fill_null("")
        return _arrow(parts["field_0"]), _arrow(label), _arrow(names.list.slice(1)).cast(TEXTS)
    frame = pl.DataFrame({"names": names})
    lengths = pl.col("names").list.eval(pl.element().str.len_chars())
    place = {
        "last": pl.col("names").list.len().cast(pl.Int64) - 1,
        "shortest": lengths.list.arg_min(),  # The first of several.
        "longest": lengths.list.arg_max(),
    }[choice].cast(pl.Int64)
    frame = frame.with_columns(place.clip(0).fill_null(0).alias("at"))
    column = pl.col("names")
    chosen = column.list.get(pl.col("at"), null_on_oob=True).fill_null("")
    others = pl.concat_list(column.list.slice(0, pl.col("at")), column.list.slice(pl.col("at") + 1))
    found = frame.select(chosen.alias("label"), others.alias("others"))
    return _arrow(parts["field_0"]), _arrow(found["label"]), _arrow(found["others"]).cast(TEXTS)


def _arrow(column: pl.Series) -> Any:
    found = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    return found if pa.types.is_large_list(found.type) else found.cast(pa.large_string())
