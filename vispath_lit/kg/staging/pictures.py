"""Listings of an entity's pictures: `entity<TAB>file`, the files in a folder of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from vispath_lit.kg.staging.importer import Batch, Unit
from vispath_lit.kg.staging.lines import fields, reject_empty
from vispath_lit.kg.staging.streams import Block, walk
from vispath_lit.kg.staging.tally import Tally


def picture_units(listing: Path, folder: Path, kind: str) -> Iterator[Unit]:
    """The work of a listing. Files of Wikimedia Commons may have underscores for blanks."""
    for member in walk(listing):
        for block in member.blocks():
            yield Unit(block.source, partial(_pictures, block, folder, kind))


def _pictures(block: Block, folder: Path, kind: str, tally: Tally) -> Iterator[Batch]:
    rows = reject_empty(fields(block, 2, tally), ("entity", "file"), tally)
    names: list[str] = rows.columns[1].to_pylist()
    outside = np.array([_leads_out(name) for name in names], dtype=bool)
    if outside.any():
        reason = "picture path that is absolute or leads out of its folder"
        tally.skip_rows(rows.source, rows.lines, outside, reason, lambda row: names[row][:200])
        rows = rows.keep(~outside)
        names = rows.columns[1].to_pylist()
    files = [str(_existing(folder.absolute(), name)) for name in names]
    kinds = pa.repeat(pa.scalar(kind, type=pa.large_string()), len(files))
    yield Batch(
        "images", [rows.columns[0], pa.array(files, type=pa.large_string()), kinds], rows.source, rows.lines
    )


def _leads_out(name: str) -> bool:
    path = Path(name)
    return path.is_absolute() or ".." in path.parts


def _existing(folder: Path, name: str) -> Path:
    """The file as listed, or as Commons writes it in paths."""
    written = folder / name
    underscored = folder / name.replace(" ", "_")
    return underscored if not written.exists() and underscored.exists() else written
