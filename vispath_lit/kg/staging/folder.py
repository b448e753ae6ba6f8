"""Writes a graph folder (DESIGN section 3) from a graph's tables, a slice of rows at a time."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa

from vispath_lit.kg.build import GraphReader
from vispath_lit.kg.tsv import escape, write_table
from vispath_lit.progress import track

SLICE = 1 << 18  # Rows.
ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))


def write_folder(reader: GraphReader, folder: Path) -> dict[str, int]:
    """Writes the four files and the pictures into an empty folder.

    Returns:
        Rows of each table.
    """
    folder.mkdir(parents=True, exist_ok=True)
    entities = reader.entities()
    ids = entities.id
    texts = {"id": ids, "label": entities.label, "aliases": entities.aliases}
    texts |= {"type": entities.type, "description": entities.description}
    _write(folder / "entities.tsv", texts)
    del entities, texts
    relations = reader.relations()
    _write(folder / "relations.tsv", {"id": relations.id, "label": relations.label})
    edges = reader.triples(ids, relations.id)
    slices = (slice(start, start + SLICE) for start in range(0, len(edges.head), SLICE))
    with (folder / "triples.tsv").open("w", encoding="utf8", newline="\n") as file:
        file.write("subject\trelation\tobject\n")
        for part in track(slices, "writing triples", -(-len(edges.head) // SLICE)):
            columns = {
                "subject": ids.take(pa.array(edges.head[part])),
                "relation": relations.id.take(pa.array(edges.relation[part])),
                "object": ids.take(pa.array(edges.tail[part])),
            }
            file.write(_lines(columns))
    images = reader.images(ids)
    if images.files:
        owners = ids.take(pa.array(images.entity)).to_pylist()
        names = (_copy(file, folder) for file in track(images.files, "pictures"))
        rows = zip(map(escape, owners), names, map(escape, images.kinds), strict=True)
        write_table(folder / "images.tsv", ("entity", "path", "kind"), rows)
    return {
        "entities": len(ids),
        "relations": len(relations.id),
        "triples": len(edges.head),
        "images": len(images.files),
    }


def _copy(source: Path, folder: Path) -> str:
    """Copies a picture under the name of its content; the path inside the folder."""
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:40]
    name = f"images/{digest[:2]}/{digest}{source.suffix.lower()}"
    if not (folder / name).exists():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / name)
    return escape(name)


def _write(path: Path, columns: dict[str, Any]) -> None:
    with path.open("w", encoding="utf8", newline="\n") as file:
        file.write("\t".join(columns) + "\n")
        for part in _slices(columns):
            file.write(_lines(part))


def _slices(columns: dict[str, Any]) -> Iterator[dict[str, Any]]:
    length = len(next(iter(columns.values())))
    for start in range(0, length, SLICE):
        yield {name: column.slice(start, SLICE) for name, column in columns.items()}


def _lines(columns: dict[str, Any]) -> str:
    frame = pl.DataFrame({name: _escaped(pl.Series(pl.from_arrow(part))) for name, part in columns.items()})
    return frame.write_csv(separator="\t", quote_style="never", include_header=False)


def _escaped(column: pl.Series) -> pl.Series:
    r"""As `tsv.escape` and `tsv.join_aliases` do, for a whole column."""
    if column.dtype == pl.List(pl.String):
        element = pl.element()
        for text, escaped in (*ESCAPES, ("|", "\\|")):
            element = element.str.replace_all(text, escaped, literal=True)
        return column.list.eval(element).list.join("|")
    for text, escaped in ESCAPES:
        column = column.str.replace_all(text, escaped, literal=True)
    return column
