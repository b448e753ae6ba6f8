"""Rows of published question files: JSON Lines, JSON and CSV, bounded, each with its place for messages."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from vispath_lit.data.lines import numbered_lines
from vispath_lit.errors import DataError
from vispath_lit.kg.images import is_there

MAX_LINE = 8 << 20  # Bytes; a longer line or field is refused, so that a broken file cannot fill the memory.
MAX_JSON = 2 << 30  # Bytes of a JSON file that is read whole.
WHOLE = 1e15  # A smaller float without a fraction is a whole number, an id or a year, that a table changed.
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".JPEG", ".JPG")


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a file; its readers name file, line and field where a value does not fit."""

    file: Path
    number: int
    values: Mapping[str, object]
    unit: str = "line"

    def fail(self, field: str, reason: str) -> NoReturn:
        raise DataError(f"{self.file}, {self.unit} {self.number}, field {field}: {reason}")

    def get(self, field: str) -> object:
        """The value at a field, or at `outer.inner`; None where there is none. Lists are searched through."""
        if field in self.values:
            return self.values[field]
        found: object = self.values
        for name in field.split("."):
            if isinstance(found, list):
                inner = [item[name] for item in found if isinstance(item, dict) and name in item]
                found = [one for item in inner for one in (item if isinstance(item, list) else [item])]
            elif isinstance(found, Mapping):
                found = found.get(name)
            else:
                return None
        return found

    def texts(self, field: str, separator: str | None = None) -> tuple[str, ...]:
        """The distinct texts of a field that are not blank: a text, a number, or a list of these."""
        value = self.get(field)
        texts = [self._text(field, one) for one in (value if isinstance(value, list) else [value])]
        parts = [part for text in texts for part in (text.split(separator) if separator else [text])]
        return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))

    def text(self, field: str) -> str:
        """The one text of a field, empty where there is none."""
        found = self.texts(field)
        if len(found) > 1:
            self.fail(field, f"found {len(found)} texts, expected one")
        return found[0] if found else ""

    def needed(self, field: str) -> str:
        found = self.text(field)
        if not found:
            self.fail(field, f"missing or empty; every question needs it (found {sorted(self.values)[:12]})")
        return found

    def whole(self, field: str) -> int | None:
        """A whole number of at least 1, also one written as text."""
        found = self.text(field)
        if not found:
            return None
        if not (found.isascii() and found.isdigit() and len(found) < 10 and int(found) > 0):
            self.fail(field, f"found {found[:80]!r}, expected a whole number of at least 1")
        return int(found)

    def _text(self, field: str, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            self.fail(field, f"found {value!r:.80}, expected a text or a list of texts")
        if isinstance(value, float) and not math.isfinite(value):
            self.fail(field, f"found {value}, expected a finite number")
        if isinstance(value, float) and value.is_integer() and abs(value) < WHOLE:
            value = int(value)
        text = str(value)
        if "\0" in text:
            self.fail(field, "found a NUL character")
        try:
            text.encode("utf8")
        except UnicodeEncodeError:
            self.fail(field, f"found half of a surrogate pair in {text[:40]!a}")
        return text


def read_rows(file: Path, list_at: str | None = None) -> Iterator[Row]:
    """The records of a `.csv`, `.json` or JSON Lines file, in order.

    Args:
        list_at: the field of a JSON file that holds the list; None where the file is the list, or a mapping
            of ids to records (the id is then the field `id`).

    Raises:
        DataError: no such file, or one that is not as its name says; names file and line.
    """
    if not file.is_file():
        raise DataError(f"{file}: no such file; see the keys of data.* for where questions are looked for")
    if file.suffix.lower() == ".csv":
        yield from _csv(file)
    elif file.suffix.lower() == ".json":
        yield from _json(file, list_at)
    else:
        for number, line in _lines(file):
            if line.strip():
                value = _parsed(file, line, f"line {number}")
                if not isinstance(value, dict):
                    raise DataError(f"{file}, line {number}: expected one JSON object a line")
                yield Row(file, number, value)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    for number, line in numbered_lines(file, MAX_LINE):
        try:
            yield number, line.decode("utf8")
        except UnicodeDecodeError as error:
            raise DataError(f"{file}, line {number}: not UTF-8 ({error.reason})") from error


def _csv(file: Path) -> Iterator[Row]:
    """Quoted fields may hold line ends; a row's number is that of its last line."""
    with file.open("rb") as source:
        beginning = source.read(1 << 16)
    if b"\0" in beginning:
        raise DataError(f"{file}: found a NUL character; is this a CSV file?")
    previous = csv.field_size_limit(MAX_LINE)
    try:
        rows = csv.reader((line for _, line in _lines(file)), strict=True)
        header = [name.strip() for name in next(rows, [])]
        if not header or len(set(header)) < len(header):
            raise DataError(f"{file}, line 1: found the header {header[:20]}, expected distinct column names")
        for row in rows:
            if row and len(row) != len(header):
                found = f"{len(row)} fields under {len(header)} columns"
                raise DataError(f"{file}, line {rows.line_num}: {found}; quote fields that hold a comma")
            if row:
                yield Row(file, rows.line_num, dict(zip(header, row, strict=True)))
    except csv.Error as error:
        raise DataError(f"{file}, line {rows.line_num}: no CSV ({error})") from error
    finally:
        csv.field_size_limit(previous)


def _json(file: Path, list_at: str | None) -> Iterator[Row]:
    if file.stat().st_size > MAX_JSON:
        raise DataError(f"{file}: larger than {MAX_JSON} bytes; write it as JSON Lines (.jsonl)")
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: not UTF-8 ({error.reason} at byte {error.start})") from error
    value = _parsed(file, text, "the file")
    if list_at is not None:
        value = value.get(list_at) if isinstance(value, dict) else None
    if isinstance(value, dict):
        value = [{"id": id, **one} if isinstance(one, dict) else one for id, one in value.items()]
    if not isinstance(value, list):
        where = "the file" if list_at is None else f"its field {list_at!r}"
        raise DataError(f"{file}: {where} is no list of questions; say where it is with data.list_at=FIELD")
    for number, one in enumerate(value, 1):
        if not isinstance(one, dict):
            raise DataError(f"{file}, record {number}: found {one!r:.80}, expected an object")
        yield Row(file, number, one, "record")


def _parsed(file: Path, text: str, place: str) -> object:
    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a JSON number")

    try:
        return json.load(io.StringIO(text), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}, {place}: not valid JSON ({error})") from error


def find_image(root: Path, name: str, folder: str = "") -> Path:
    """The picture `name` (with or without suffix) below `root`; where there is none, where it was expected.

    Looked for as it is, in `folder`, and in folders named by its first three characters (as landmarks are
    published). A name that leads out of `root` leads to no picture.
    """
    plain = Path(name)
    if plain.is_absolute() or ".." in plain.parts or not name.strip() or len(name) > 255:
        return root / "no-such-picture"
    nested = Path(*name[:3], name) if len(name) > 3 and "/" not in name else plain
    places = [place / one for place in dict.fromkeys([root / folder, root]) for one in (plain, nested)]
    files = [
        one for place in places for one in (place, *(place.with_name(place.name + end) for end in SUFFIXES))
    ]
    return next((file for file in files if is_there(file)), places[0])
