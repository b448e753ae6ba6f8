"""A graph folder (DESIGN section 3), read and checked: what the store is built from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.errors import DataError
from vispath_lit.kg.faults import Check, Faults
from vispath_lit.kg.images import check_image
from vispath_lit.kg.tsv import Table, contains, read_table, split_aliases, unescape

FILES = {
    "entities.tsv": (("id", "label"), ("aliases", "type", "description")),
    "relations.tsv": (("id", "label"), ("inverse_label",)),
    "triples.tsv": (("subject", "relation", "object"), ()),
    "images.tsv": (("entity", "path", "kind"), ()),
}


@dataclass(frozen=True, slots=True)
class EntityTable:
    """N entities as Arrow columns; `aliases` is a list column."""

    id: Any
    label: Any
    aliases: Any
    type: Any
    description: Any


@dataclass(frozen=True, slots=True)
class RelationTable:
    """R relations as Arrow columns; an empty inverse label means that there is none."""

    id: Any
    label: Any
    inverse_label: Any


@dataclass(frozen=True, slots=True, eq=False)
class TripleTable:
    """Triples as written, repetitions included.

    Attributes:
        head, relation, tail: `[T]` int32.
    """

    head: NDArray[np.int32]
    relation: NDArray[np.int32]
    tail: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ImageTable:
    """n reference images, in file order.

    Attributes:
        entity: `[n]` int32.
        files: n existing files inside the folder.
        kinds: n texts.
    """

    entity: NDArray[np.int32]
    files: list[Path]
    kinds: list[str]


@dataclass(slots=True)
class FolderReader:
    """Reads the four files of a folder in turn, sharing one collection of faults and notices."""

    folder: Path
    faults: Faults
    notices: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise DataError(f"{self.folder}: no such graph folder; expected one with {', '.join(FILES)}")

    def entities(self) -> EntityTable:
        """Raises DataError where a file, header or line is not as it should be; so do the other three."""
        table, columns, bad = self._read("entities.tsv", plain=("id", "label", "type", "description"))
        columns["aliases"], bad["aliases"] = split_aliases(table.columns["aliases"])
        keep = self._accept(
            table, columns, [*_escapes(table, bad), *_nonempty(table, columns, ("id", "label"))]
        )
        return EntityTable(**_rows(columns, keep))

    def relations(self) -> RelationTable:
        table, columns, bad = self._read("relations.tsv", plain=("id", "label", "inverse_label"))
        ids = columns["id"]
        marked = Check(
            _mask(pc.starts_with(ids, "~")),
            lambda row: (
                f"relation id {ids[row].as_py()!r} begins with ~, the mark of an inverse step; rename it"
            ),
        )
        checks = [*_escapes(table, bad), *_nonempty(table, columns, ("id", "label")), marked]
        keep = self._accept(table, columns, checks)
        return RelationTable(**_rows(columns, keep))

    def triples(self, entity_ids: Any, relation_ids: Any) -> TripleTable:
        table, columns, bad = self._read("triples.tsv", plain=("subject", "relation", "object"))
        if len(table) == 0:
            raise DataError(f"{table.path}: the graph is empty; expected at least one triple")
        checks, found = _escapes(table, bad), []
        for name, known, file in (
            ("subject", entity_ids, "entities.tsv"),
            ("relation", relation_ids, "relations.tsv"),
            ("object", entity_ids, "entities.tsv"),
        ):
            index = _index_in(columns[name], known)
            checks.append(_unknown(name, columns[name], index, file))
            found.append(index)
        keep = self.faults.reject(table, checks)
        if not keep.any():
            raise DataError(f"{table.path}: every triple was left out, first: {self._first_faults()}")
        return TripleTable(*(index if keep.all() else index[keep] for index in found))

    def images(self, entity_ids: Any) -> ImageTable:
        """Headers are read, nothing is decoded. A folder may lack images.tsv."""
        if not (self.folder / "images.tsv").exists():
            return ImageTable(np.zeros(0, dtype=np.int32), [], [])
        table, columns, bad = self._read("images.tsv", plain=("entity", "path", "kind"))
        entity = _index_in(columns["entity"], entity_ids)
        paths: list[str] = columns["path"].to_pylist()
        reasons = self._image_faults(paths)
        broken = np.array([reason is not None for reason in reasons], dtype=bool)
        checks = [
            *_escapes(table, bad),
            _unknown("entity", columns["entity"], entity, "entities.tsv"),
            Check(broken, lambda row: str(reasons[row])),
        ]
        keep = self.faults.reject(table, checks)
        files = [self.folder / path for path, kept in zip(paths, keep, strict=True) if kept]
        return ImageTable(entity[keep], files, columns["kind"].filter(pa.array(keep)).to_pylist())

    def _read(
        self, name: str, plain: Sequence[str]
    ) -> tuple[Table, dict[str, Any], dict[str, NDArray[np.bool_]]]:
        """The table, its decoded `plain` columns, and the rows of each with a bad escape."""
        path = self.folder / name
        required, optional = FILES[name]
        table = read_table(path, required, optional, self.faults.add)
        if table.extra:
            self.notices.append(f"{name}: column {', '.join(table.extra)} is not used and was ignored")
        if table.absent:
            self.notices.append(f"{name}: column {', '.join(table.absent)} is absent and taken as empty")
        columns = {key: table.columns[key] for key in table.columns}
        bad = {key: np.zeros(len(table), dtype=bool) for key in table.columns}
        if contains(path, b"\\"):
            for key in plain:
                columns[key], bad[key] = unescape(columns[key])
        return table, columns, bad

    def _accept(self, table: Table, columns: dict[str, Any], checks: list[Check]) -> NDArray[np.bool_]:
        """`[n]`: the rows that break no rule and repeat no id."""
        good = ~np.any([check.bad for check in checks], axis=0)
        again = np.zeros(len(table), dtype=bool)
        again[good] = _repeats(columns["id"].filter(pa.array(good)))
        ids = columns["id"]
        checks.append(Check(again, lambda row: f"id {ids[row].as_py()!r} was given before; ids are unique"))
        keep = self.faults.reject(table, checks)
        if not keep.any():
            raise DataError(f"{table.path}: no usable line; first faults: {self._first_faults()}")
        return keep

    def _first_faults(self) -> str:
        return "; ".join(self.faults.listed[:3]) or "none, the file has only a header"

    def _image_faults(self, paths: list[str]) -> list[str | None]:
        root = self.folder.resolve()
        return [_image_fault(root, path) for path in paths]


def _image_fault(root: Path, path: str) -> str | None:
    """Why a reference image cannot be used, None if it can."""
    relative = Path(path)
    if not path or relative.is_absolute() or ".." in relative.parts:
        return f"image path {path[:200]!r} must be relative to the graph folder and stay inside it"
    try:
        file = (root / relative).resolve()
        if not file.is_relative_to(root):
            return f"image path {path[:200]!r} leads out of the graph folder through a link; copy the file in"
        if not file.is_file():
            return f"image {path[:200]!r} does not exist in the graph folder"
        check_image(file)
    except (DataError, OSError, RuntimeError) as error:
        return str(error)
    return None


def _escapes(table: Table, bad: dict[str, NDArray[np.bool_]]) -> list[Check]:
    def check(name: str) -> Check:
        column = table.columns[name]
        return Check(
            bad[name],
            lambda row: (
                f"{name} {column[row].as_py()[:200]!r} has a backslash that begins no escape; "
                "allowed are \\t, \\n, \\r, \\\\ and, in aliases, \\|"
            ),
        )

    return [check(name) for name, rows in bad.items() if rows.any()]


def _nonempty(table: Table, columns: dict[str, Any], names: Sequence[str]) -> list[Check]:
    hint = {"label": "an entity or relation without a name may repeat its id here"}

    def check(name: str) -> Check:
        empty = _mask(pc.equal(pc.utf8_trim_whitespace(columns[name]), ""))
        return Check(empty, lambda row: f"empty {name}; {hint.get(name, 'each line needs one')}")

    return [check(name) for name in names]


def _unknown(name: str, column: Any, index: NDArray[np.int32], file: str) -> Check:
    return Check(index < 0, lambda row: f"{name} {column[row].as_py()[:200]!r} is not an id in {file}")


def _index_in(column: Any, known: Any) -> NDArray[np.int32]:
    found = pc.fill_null(pc.index_in(column, value_set=known), -1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int32)


def _repeats(ids: Any) -> NDArray[np.bool_]:
    """Rows whose value an earlier row had: codes are given in order of first appearance."""
    codes = np.asarray(pc.dictionary_encode(ids).indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    highest = np.maximum.accumulate(codes)
    return codes <= np.concatenate([[-1], highest[:-1]])[: len(codes)]


def _rows(columns: dict[str, Any], keep: NDArray[np.bool_]) -> dict[str, Any]:
    if keep.all():  # The common case, and a copy of all texts saved.
        return columns
    return {name: column.filter(pa.array(keep)) for name, column in columns.items()}


def _mask(values: Any) -> NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=bool)
