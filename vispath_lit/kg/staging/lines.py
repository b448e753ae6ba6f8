"""Turns blocks of lines into Arrow columns: one vectorised pass, and line by line only where that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from vispath_lit.kg.staging.streams import Block
from vispath_lit.kg.staging.tally import Tally

SEPARATORS = tuple(chr(code) for code in (*range(1, 9), 11, *range(14, 32)))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one block.

    Attributes:
        columns: Arrow large_string arrays of one length.
        lines: `[n]` int64, the line each row stands in.
    """

    source: str
    columns: list[Any]
    lines: NDArray[np.int64]

    def keep(self, good: NDArray[np.bool_]) -> Rows:
        """The rows where `good` holds."""
        if good.all():
            return self
        mask = pa.array(good)
        return Rows(self.source, [column.filter(mask) for column in self.columns], self.lines[good])


def fields(block: Block, count: int, tally: Tally, separator: str = "\t") -> Rows:
    """Lines of exactly `count` fields; others are skipped and counted. Blank lines are no rows."""
    return _rows(block, count, separator, tally)


def whole_lines(block: Block, tally: Tally) -> Rows:
    """The lines as they are, in one column."""
    free = next((mark for mark in SEPARATORS if mark.encode() not in block.data), None)
    if free is None:  # No text holds every control character.
        tally.skip(block.source, block.line, "not plain text", "control characters of all kinds")
        return _rows(Block(b"", block.source, block.line), 1, SEPARATORS[0], tally)
    return _rows(block, 1, free, tally)


def reject_empty(rows: Rows, names: tuple[str, ...], tally: Tally) -> Rows:
    """Rows whose named columns (the first ones) all hold something else than white space."""
    for index, name in enumerate(names):
        empty = mask(pc.equal(pc.utf8_trim_whitespace(rows.columns[index]), ""))
        if empty.any():
            tally.skip_rows(rows.source, rows.lines, empty, f"empty {name}")
            rows = rows.keep(~empty)
    return rows


def reject_inverse_marks(rows: Rows, index: int, tally: Tally) -> Rows:
    """Rows whose relation does not begin with `~`."""
    column = rows.columns[index]
    marked = mask(pc.starts_with(column, "~"))
    if marked.any():
        reason = "relation that begins with ~, the mark of an inverse step"
        tally.skip_rows(rows.source, rows.lines, marked, reason, lambda row: column[row].as_py()[:80])
        rows = rows.keep(~marked)
    return rows


def mask(values: Any) -> NDArray[np.bool_]:
    """An Arrow boolean column as numpy."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=bool)


def _rows(block: Block, count: int, separator: str, tally: Tally) -> Rows:
    data, lines = block.data, None
    columns = None if b"\0" in data or b"\r" in data else _parse(data, count, separator)
    if columns is None:
        data, lines = _good_lines(block, count, separator, tally)
        columns = _parse(data, count, separator)
        assert columns is not None, f"{block.source}: lines that were checked one by one do not parse"
    if lines is None:
        lines = _numbers(data, len(columns[0]))
    return Rows(block.source, columns, lines + block.line)


def _parse(data: bytes, count: int, separator: str) -> list[Any] | None:
    """The columns, None where a line is malformed."""
    names = [str(i) for i in range(count)]
    if not data.strip(b"\n"):
        return [pa.array([], type=pa.large_string()) for _ in names]
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            pacsv.ReadOptions(column_names=names, encoding="utf8", block_size=len(data) + 1),
            pacsv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False, escape_char=False),
            pacsv.ConvertOptions(
                column_types={name: pa.large_string() for name in names},
                strings_can_be_null=False,
                check_utf8=True,
            ),
        )
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return None
    return [c.chunk(0) if c.num_chunks == 1 else c.combine_chunks() for c in table.columns]


def _numbers(data: bytes, rows: int) -> NDArray[np.int64]:
    """`[n]` index of the line of each row; blank lines have no row."""
    ends = data.count(b"\n")
    if ends == rows:
        return np.arange(rows, dtype=np.int64)
    stops = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 10)
    return np.flatnonzero(np.diff(stops, prepend=-1) > 1)


def _good_lines(block: Block, count: int, separator: str, tally: Tally) -> tuple[bytes, NDArray[np.int64]]:
    """The usable lines and their indices; the others are reported."""
    kept: list[bytes] = []
    numbers: list[int] = []
    for index, line in enumerate(block.data.split(b"\n")):
        if not line:
            continue
        if fault := _fault(line, count, separator.encode()):
            tally.skip(block.source, block.line + index, *fault)
        else:
            kept.append(line)
            numbers.append(index)
    return b"\n".join([*kept, b""]), np.array(numbers, dtype=np.int64)


def _fault(line: bytes, count: int, separator: bytes) -> tuple[str, str] | None:
    if b"\0" in line:
        return "NUL byte", f"at byte {line.index(0) + 1}"
    if b"\r" in line:
        return "carriage return inside a line", f"at byte {line.index(13) + 1}"
    try:
        line.decode("utf8")
    except UnicodeDecodeError as error:
        return "not UTF-8", f"byte 0x{line[error.start]:02x} at byte {error.start + 1}"
    if (found := line.count(separator) + 1) != count:
        return "wrong number of columns", f"{found}, expected {count}"
    return None
