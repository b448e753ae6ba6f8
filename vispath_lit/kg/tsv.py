r"""Reads and writes the tab-separated files of a graph folder (DESIGN section 3).

A clean file is read in one vectorised pass. Only when that fails does a second pass go line by line: it
finds each malformed line and, where bad lines are to be skipped, copies the good ones and reads those.
Line ends may be LF, CRLF or CR; a byte order mark and blank lines are ignored. Inside a field a tab,
newline, carriage return or backslash is written `\t`, `\n`, `\r`, `\\`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from vispath_lit.errors import DataError
from vispath_lit.whole import whole_file

MAX_LINE = 4 << 20  # Characters; a longer line is a fault, so that a broken file cannot fill the memory.
BLOCK = 24 << 20  # Bytes read at a time; holds the longest allowed line (4 bytes a character at most).
MARK = "\0"  # Stands for a backslash while a field is decoded; NUL is refused in files, so it is free.

Report = Callable[[Path, int, str], None]


@dataclass(frozen=True, slots=True)
class Table:
    """The wanted columns of one file.

    Attributes:
        columns: Arrow large_string arrays of one length, still escaped; absent optional ones are empty texts.
        extra: columns of the file that nothing reads.
        absent: optional columns that the file lacks.
        dropped: lines that were malformed and left out.
    """

    path: Path
    columns: dict[str, Any]
    extra: tuple[str, ...]
    absent: tuple[str, ...]
    dropped: frozenset[int]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def lines(self, rows: Sequence[int]) -> list[int]:
        """The line number in the file of each row; `rows` ascend."""
        found: list[int] = []
        wanted = iter(rows)
        target = next(wanted, None)
        if target is None:
            return found
        row = -1
        for number, text in _lines(self.path):
            if number == 1 or not text or number in self.dropped:
                continue
            row += 1
            if row == target:
                found.append(number)
                target = next(wanted, None)
                if target is None:
                    break
        return found


def read_table(path: Path, required: Sequence[str], optional: Sequence[str], report: Report) -> Table:
    """Reads the named columns of a TSV file; `report` is told of each malformed line.

    Raises:
        DataError: no such file, no usable header, or whatever `report` raises.
    """
    header = _header(path, required, optional)
    dropped: frozenset[int] = frozenset()
    try:
        # A NUL is legal UTF-8, so only this search finds it.
        columns = None if contains(path, b"\0") else _read(path, header)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        columns = None
    if columns is None:
        columns, dropped = _read_good_lines(path, header, report)
    length = len(next(iter(columns.values())))
    absent = tuple(name for name in optional if name not in header)
    for name in absent:
        columns[name] = pa.array(np.full(length, ""), type=pa.large_string())
    known = {*required, *optional}
    kept = {name: columns[name] for name in (*required, *optional)}
    return Table(path, kept, tuple(name for name in header if name not in known), absent, dropped)


def contains(path: Path, byte: bytes) -> bool:
    """Whether a file holds a byte."""
    with path.open("rb") as file:
        return any(byte in chunk for chunk in iter(lambda: file.read(1 << 22), b""))


def _header(path: Path, required: Sequence[str], optional: Sequence[str]) -> list[str]:
    expected = f"expected a header line with the columns {', '.join(required)}" + (
        f" (optional: {', '.join(optional)})" if optional else ""
    )
    if not path.is_file():
        raise DataError(f"{path}: no such file; {expected}, separated by tabs")
    number, line = next(_lines(path), (0, ""))
    if number == 0:
        raise DataError(f"{path}, line 1: the file is empty; {expected}")
    if fault := _fault(line, None):
        raise DataError(f"{path}, line 1: {fault}; {expected}")
    header = line.split("\t")
    if missing := [name for name in required if name not in header]:
        found = line if len(line) <= 200 else line[:200] + "..."
        raise DataError(f"{path}, line 1: column {', '.join(missing)} is missing in {found!r}; {expected}")
    if twice := sorted({name for name in header if header.count(name) > 1}):
        raise DataError(f"{path}, line 1: column {', '.join(twice)} appears twice; {expected}, each once")
    return header


def _read(path: Path, header: list[str]) -> dict[str, Any]:
    table = pacsv.read_csv(
        path,
        pacsv.ReadOptions(block_size=BLOCK, skip_rows=1, column_names=header, encoding="utf8"),
        pacsv.ParseOptions(delimiter="\t", quote_char=False, double_quote=False, escape_char=False),
        pacsv.ConvertOptions(
            column_types={name: pa.large_string() for name in header},
            strings_can_be_null=False,
            check_utf8=True,
        ),
    )
    columns = {}
    for name in header:  # Each column's pieces are freed before the next one is joined.
        columns[name] = _one_chunk(table.column(0))
        table = table.remove_column(0)
    return columns


def _one_chunk(column: Any) -> Any:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _read_good_lines(path: Path, header: list[str], report: Report) -> tuple[dict[str, Any], frozenset[int]]:
    dropped: set[int] = set()
    handle, name = tempfile.mkstemp(suffix=".tsv")
    try:
        with os.fdopen(handle, "w", encoding="utf8", newline="\n") as good:
            for number, text in _lines(path):
                fault = _fault(text, None if number == 1 else len(header))
                if fault and text:
                    report(path, number, fault)
                    dropped.add(number)
                else:
                    good.write(text + "\n")
        return _read(Path(name), header), frozenset(dropped)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path}: cannot be read as tab-separated UTF-8 text: {error}") from error
    finally:
        Path(name).unlink()


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines without their ends; bad bytes become lone surrogates, over-long lines are cut."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline=None) as file:
        number = 0
        while line := file.readline(MAX_LINE + 1):
            number += 1
            if not line.endswith("\n") and len(line) > MAX_LINE:
                while (rest := file.readline(MAX_LINE)) and not rest.endswith("\n"):
                    pass
            yield number, line.removesuffix("\n")


def _fault(text: str, columns: int | None) -> str | None:
    if len(text) > MAX_LINE:
        return f"the line is longer than {MAX_LINE} characters"
    if not text.isascii() and any("\udc80" <= c <= "\udcff" for c in text):
        position = next(i for i, c in enumerate(text) if "\udc80" <= c <= "\udcff")
        return f"byte 0x{ord(text[position]) - 0xDC00:02x} at character {position + 1} is not valid UTF-8"
    if MARK in text:
        return f"NUL byte at character {text.index(MARK) + 1}; the file is not plain text"
    if columns is not None and (found := text.count("\t") + 1) != columns:
        return f"found {found} column{'s' * (found != 1)}, expected {columns}"
    return None


def unescape(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    """Decodes escapes in a column.

    Returns:
        The decoded column and `[n]` bool, the rows with an escape that means nothing.
    """
    marked, bad = mark_escapes(column)
    return pc.replace_substring(marked, MARK, "\\"), bad


def mark_escapes(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    """As `unescape`, with escaped backslashes left as NUL. Pairs go first: runs are read left to right."""
    if not pc.any(pc.match_substring(column, "\\")).as_py():
        return column, np.zeros(len(column), dtype=bool)
    for escape, meaning in (("\\\\", MARK), ("\\t", "\t"), ("\\n", "\n"), ("\\r", "\r")):
        column = pc.replace_substring(column, escape, meaning)
    return column, np.asarray(pc.match_substring(column, "\\").to_numpy(zero_copy_only=False), dtype=bool)


def split_aliases(column: Any) -> tuple[Any, NDArray[np.bool_]]:
    r"""Decodes aliases joined by `|` (`\|` inside an alias); empty and repeated ones are dropped.

    Returns:
        An Arrow list<large_string> column and `[n]` bool, the rows with an escape that means nothing.
    """
    backslash, bar = MARK + "b", MARK + "p"
    column = pc.replace_substring(column, "\\\\", backslash)
    column, bad = mark_escapes(pc.replace_substring(column, "\\|", bar))
    split = (
        pl.Series(pl.from_arrow(column), dtype=pl.String)
        .str.split("|")
        .list.eval(pl.element().str.replace_all(bar, "|", literal=True))
    )
    split = split.list.eval(pl.element().str.replace_all(backslash, "\\", literal=True))
    split = split.list.eval(pl.element().filter(pl.element() != "")).list.unique(maintain_order=True)
    return split.to_arrow().cast(pa.large_list(pa.large_string())), bad


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def escape(text: str) -> str:
    """A text as one TSV field."""
    return text.translate(_ESCAPES)


def join_aliases(aliases: Iterable[str]) -> str:
    """Aliases as one TSV field; the inverse of `split_aliases`."""
    return "|".join(escape(alias).replace("|", "\\|") for alias in aliases)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Writes a TSV file; the fields are already escaped (`escape`, `join_aliases`).

    Raises:
        DataError: a row with the wrong number of fields, or a raw tab or line end in a field.
    """
    with whole_file(path) as partial, partial.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(header) + "\n")
        for number, row in enumerate(rows, start=2):
            line = "\t".join(row)
            if len(row) != len(header) or line.count("\t") != len(row) - 1 or "\n" in line or "\r" in line:
                raise DataError(f"{path}, line {number}: {list(row)!r} does not fit {list(header)}")
            file.write(line + "\n")
