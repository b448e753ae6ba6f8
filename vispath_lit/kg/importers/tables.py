"""Plain tables of triples: TSV, CSV and Parquet, with or without headers, columns by name or by place.

Without `columns` the first three columns are subject, relation and object. A file of names (`entities`,
`relations`) has the id first and its label second; a third column holds aliases joined by `|`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import TEXTS, Batch, TableName, Unit
from vispath_lit.kg.staging.lines import Rows, fields, reject_empty, reject_inverse_marks
from vispath_lit.kg.staging.parquet import parquet_batches
from vispath_lit.kg.staging.pictures import picture_units
from vispath_lit.kg.staging.streams import Block, Member, walk
from vispath_lit.kg.staging.tally import Tally

Kind = Literal["auto", "tsv", "csv", "parquet"]
TRIPLE = ("subject", "relation", "object")
_CSV_FIELD = re.compile(r'"(?P<quoted>(?:[^"]|"")*+)"(?P<rest>[^",]*+)|[^",][^,]*+|')


@dataclass(frozen=True)
class Format:
    """TSV, CSV or Parquet files of triples, and optionally of names and pictures."""

    sources: tuple[Path, ...] = field(metadata={"help": "Files of triples, plain, compressed or archived."})
    kind: Kind = field(
        default="auto", metadata={"help": "tsv, csv, parquet; auto: by the names of the files (else TSV)."}
    )
    columns: str = field(
        default="",
        metadata={"help": "Subject, relation, object: names of the header, or places (2,1,3)."},
    )
    header: bool = field(default=False, metadata={"help": "The first line of TSV and CSV is a header."})
    entities: Path | None = field(default=None, metadata={"help": "Names: id, label, aliases joined by |."})
    relations: Path | None = field(default=None, metadata={"help": "Names: id, label."})
    images: Path | None = field(default=None, metadata={"help": "A listing of pictures: entity<TAB>file."})
    pictures: Path | None = field(
        default=None, metadata={"help": "The folder of the listed files; default: the listing's own."}
    )
    keep_unlinked: bool = field(
        default=True, metadata={"help": "Keep named entities that no triple mentions."}
    )

    def __post_init__(self) -> None:
        if self.kind not in ("auto", "tsv", "csv", "parquet"):
            raise DataError(f"kind is {self.kind!r}; allowed are auto, tsv, csv and parquet")
        chosen = self.columns.split(",") if self.columns else TRIPLE
        if len(chosen) != 3 or len(set(chosen)) != 3 or not all(name.strip() for name in chosen):
            raise DataError(
                f"columns is {self.columns!r}; expected three, as in subject,relation,object or 2,1,3"
            )

    def units(self) -> Iterator[Unit]:
        names: tuple[tuple[TableName, Path | None], ...] = (
            ("entities", self.entities),
            ("relations", self.relations),
        )
        for table, path in names:
            if path is not None:
                for member in walk(path):
                    yield from self._units(member, table)
        for source in self.sources:
            for member in walk(source):
                yield from self._units(member, "triples")
        if self.images is not None:
            yield from picture_units(self.images, self.pictures or self.images.parent, "photo")

    def labels(self, ids: Any) -> Any:
        return ids

    def _units(self, member: Member, table: TableName) -> Iterator[Unit]:
        kind = self.kind if self.kind != "auto" else _kind(member.name)
        if kind == "parquet":
            for batch, line in parquet_batches(member):
                yield Unit(member.source, partial(self._parquet, batch, member.source, line, table))
            return
        layout: list[str] | None = None
        for block in member.blocks():
            if layout is None:
                block = _from_first_line(block)
                if not block.data:
                    continue
                layout, block = self._layout(block, "," if kind == "csv" else "\t")
            yield Unit(block.source, partial(self._text, block, layout, kind == "csv", table))

    def _parquet(self, batch: Any, source: str, line: int, table: TableName, tally: Tally) -> Iterator[Batch]:
        return self._batches(_columns(batch, source, line, self._wanted(table)), table, tally)

    def _text(
        self, block: Block, layout: list[str], csv: bool, table: TableName, tally: Tally
    ) -> Iterator[Batch]:
        return self._batches(_delimited(block, layout, self._wanted(table), csv, tally), table, tally)

    def _wanted(self, table: TableName) -> list[str]:
        if table == "triples":
            return [name.strip() for name in self.columns.split(",")] if self.columns else ["1", "2", "3"]
        return ["1", "2", "3?"] if table == "entities" else ["1", "2"]

    def _layout(self, block: Block, separator: str) -> tuple[list[str], Block]:
        """The header, or as many places as the first line has fields, and the block without the header."""
        end = block.data.index(b"\n") + 1
        first = block.data[:end].decode("utf8", "replace").rstrip("\n")
        columns = _csv_fields(first) if separator == "," else first.split("\t")
        if columns is None:
            raise DataError(
                f"{block.source}, line {block.line}: a quote that does not end its field "
                f"({first[:80]!r}); the first line tells how many fields there are: mend it"
            )
        if not self.header:
            return [""] * len(columns), block
        return columns, Block(block.data[end:], block.source, block.line + 1)

    def _batches(self, rows: Rows, table: TableName, tally: Tally) -> Iterator[Batch]:
        if table == "triples":
            rows = reject_inverse_marks(reject_empty(rows, TRIPLE, tally), 1, tally)
        else:
            rows = reject_empty(rows, ("id",), tally)
        columns = rows.columns
        if table == "relations":
            rows = reject_inverse_marks(rows, 0, tally)
            columns = rows.columns[:2]
        if table == "entities":
            columns = [*columns[:2], _aliases(columns[2])]
        yield Batch(table, columns, rows.source, rows.lines)


def _from_first_line(block: Block) -> Block:
    """The block without the blank lines that it begins with."""
    data = block.data.lstrip(b"\n")
    return Block(data, block.source, block.line + len(block.data) - len(data))


def _csv_fields(line: str) -> list[str] | None:
    """The fields of one CSV line as Arrow tells them apart; None where a quote does not end its field.

    A field is quoted where it begins with a quote; any other quote is a sign like others.
    """
    found: list[str] = []
    at = 0
    while True:
        match = _CSV_FIELD.match(line, at)
        assert match is not None  # it may be empty
        quoted = match["quoted"]
        found.append(match[0] if quoted is None else quoted.replace('""', '"') + match["rest"])
        at = match.end()
        if at == len(line):
            return found
        if line[at] != ",":
            return None
        at += 1


def _kind(name: str) -> str:
    lower = name.lower()
    return "parquet" if lower.endswith((".parquet", ".pq")) else "csv" if lower.endswith(".csv") else "tsv"


def _places(wanted: list[str], header: list[str], source: str) -> list[int | None]:
    """Where the wanted columns are; None for an optional one that is not there."""
    found: list[int | None] = []
    for name in wanted:
        bare = name.removesuffix("?")
        if name in header:
            found.append(header.index(name))
        elif bare.isdecimal() and 1 <= int(bare) <= len(header):
            found.append(int(bare) - 1)
        elif name.endswith("?"):
            found.append(None)
        else:
            columns = ", ".join(text or str(i) for i, text in enumerate(header, start=1))
            raise DataError(f"{source}: no column {name!r}; it has {columns[:300]}. Say which with --columns")
    return found


def _delimited(block: Block, header: list[str], wanted: list[str], csv: bool, tally: Tally) -> Rows:
    rows = _quoted(block, len(header), tally) if csv and b'"' in block.data else None
    if rows is None:
        rows = fields(block, len(header), tally, "," if csv else "\t")
    return _chosen(rows, _places(wanted, header, block.source))


def _chosen(rows: Rows, places: list[int | None]) -> Rows:
    empty = pa.repeat(pa.scalar("", type=pa.large_string()), len(rows.lines))
    return Rows(rows.source, [empty if at is None else rows.columns[at] for at in places], rows.lines)


def _quoted(block: Block, count: int, tally: Tally) -> Rows:
    """Lines of CSV with quotes. A quoted field may hold commas and doubled quotes, no line ends."""
    data, lines = block.data, block.line + np.arange(block.data.count(b"\n"), dtype=np.int64)
    names = [str(i) for i in range(count)]
    bad: list[int] = []
    kept = []
    for index, line in enumerate(data.split(b"\n")[:-1]):
        fault = _quoted_fault(line, count)
        if fault:
            tally.skip(block.source, block.line + index, *fault)
        if fault or not line:
            bad.append(index)
        else:
            kept.append(line)
    lines = np.delete(lines, bad)
    if not kept:
        return Rows(block.source, [pa.array([], type=pa.large_string()) for _ in names], lines)
    table = pacsv.read_csv(
        pa.BufferReader(b"\n".join([*kept, b""])),
        pacsv.ReadOptions(column_names=names),
        convert_options=pacsv.ConvertOptions(
            column_types={name: pa.large_string() for name in names}, strings_can_be_null=False
        ),
    )
    return Rows(block.source, [column.combine_chunks() for column in table.columns], lines)


def _quoted_fault(line: bytes, count: int) -> tuple[str, str] | None:
    if b"\0" in line or b"\r" in line:
        return "control character in a line", ""
    try:
        text = line.decode("utf8")
    except UnicodeDecodeError as error:
        return "not UTF-8", f"byte 0x{line[error.start]:02x} at byte {error.start + 1}"
    if not text:
        return None
    if text.count('"') % 2:
        return "quote that does not end in its line", text[:80]
    found = _csv_fields(text)
    if found is None:
        return "quote that does not end its field", text[:80]
    if len(found) != count:
        return "wrong number of columns", f"{len(found)}, expected {count}"
    return None


def _columns(batch: Any, source: str, line: int, wanted: list[str]) -> Rows:
    """Columns of Parquet as texts; null is an empty text, numbers are written out."""
    columns = []
    for at in _places(wanted, list(batch.schema.names), source):
        if at is None:
            columns.append(pa.repeat(pa.scalar("", type=pa.large_string()), len(batch)))
            continue
        try:
            columns.append(pc.fill_null(batch.column(at).cast(pa.large_string()), ""))
        except pa.ArrowException as error:
            name = batch.schema.names[at]
            raise DataError(f"{source}: column {name!r} of {batch.schema.types[at]} is no text") from error
    return Rows(source, columns, line + np.arange(len(batch), dtype=np.int64))


def _aliases(column: Any) -> Any:
    split = pl.Series(pl.from_arrow(column), dtype=pl.String).str.split("|")
    split = split.list.eval(pl.element().filter(pl.element().str.strip_chars() != ""))
    return split.list.unique(maintain_order=True).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(TEXTS)
