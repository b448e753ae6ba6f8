"""Imports a source into a store or a graph folder: stages it, then builds the whole beside the target."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import xxhash

from vispath_lit.engines.engine import Engine
from vispath_lit.errors import DataError
from vispath_lit.kg.build import check_target, replace, write_store
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.staging.folder import write_folder
from vispath_lit.kg.staging.graph import StagedGraph
from vispath_lit.kg.staging.importer import Importer
from vispath_lit.kg.staging.stage import Stage
from vispath_lit.kg.staging.tally import Tally


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the sources.

    Attributes:
        fingerprint: of the store; None for a graph folder.
        duplicate_triples: exact repetitions, merged in a store; None for a folder, which keeps them.
        read: rows taken, by table.
        skipped: rows left out, by reason; `faults` spells out the first 100.
        noted: what is no fault but good to know, counted.
    """

    path: str
    fingerprint: str | None
    entities: int
    relations: int
    triples: int
    images: int
    duplicate_triples: int | None
    read: dict[str, int]
    skipped: dict[str, int]
    noted: dict[str, int]
    faults: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def import_graph(
    importer: Importer,
    out: str | Path,
    *,
    as_folder: bool = False,
    on_error: OnError = "fail",
    engine: Engine | None = None,
) -> ImportReport:
    """Imports into the store `out`, replaced as a whole if it exists, or into a new graph folder.

    A stopped import keeps what it has read in `.OUT.import` beside `out`; the same call goes on with it.

    Args:
        on_error: `fail` stops at the first fault and leaves `out` as it was, `skip` leaves such rows out and
            counts them.
        engine: parses the parts of the sources; None: this process. The bytes of `out` are the same.

    Raises:
        DataError: a fault (with `fail`), a damaged file, nothing to import, or a full disk.
    """
    target = Path(out).absolute()
    sources = source_files(importer)
    for source in sources:
        check_target(source, target)
    if as_folder and target.exists() and any(target.iterdir()):
        raise DataError(f"{target}: a graph folder is only written to a new or empty place; name another")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with Stage(target, import_key(importer, sources), on_error) as stage:
            stage.fill(importer, engine)
            report = _finish(stage, importer, target, as_folder)
            stage.remove()
    except OSError as error:
        raise DataError(
            f"{target}: the import stopped: {error}; {target.name} is as it was. See to it (free space, "
            "rights) and run the same command again: it goes on where it stopped"
        ) from error
    return report


def _finish(stage: Stage, importer: Importer, target: Path, as_folder: bool) -> ImportReport:
    tally = Tally(stage.on_error)
    tally.add(stage.tally)
    graph = StagedGraph(stage, importer, tally)
    partial = stage.folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        if as_folder:
            counts = write_folder(graph, partial)
            fingerprint, duplicates = None, None
        else:
            built = write_store(graph, partial)
            counts = {name: getattr(built.manifest, f"num_{name}") for name in GRAPH}
            fingerprint, duplicates = built.manifest.fingerprint, built.duplicate_triples
        replace(target, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    record = tally.as_dict()
    return ImportReport(
        path=str(target),
        fingerprint=fingerprint,
        **counts,
        duplicate_triples=duplicates,
        read=record["read"],
        skipped=record["skipped"],
        noted={name: count for name, count in record["noted"].items() if count},
        faults=tuple(record["faults"]),
    )


GRAPH = ("entities", "relations", "triples", "images")


def source_files(importer: Importer) -> list[Path]:
    """Every path among the importer's fields."""
    values = [getattr(importer, field.name) for field in fields(importer)]  # type: ignore[arg-type]
    found: list[Path] = []
    for value in values:
        found += [value] if isinstance(value, Path) else []
        found += [item for item in value if isinstance(item, Path)] if isinstance(value, tuple) else []
    return [path.absolute() for path in found]


def import_key(importer: Importer, sources: Iterable[Path]) -> str:
    """Format, options, and names, sizes and times of all files: with another key an import begins anew."""
    options = {field.name: repr(getattr(importer, field.name)) for field in fields(importer)}  # type: ignore[arg-type]
    key = xxhash.xxh3_128(f"{type(importer).__module__} {sorted(options.items())}\n".encode(errors="replace"))
    for source in sources:
        if not source.exists():
            raise DataError(f"{source}: no such file or folder")
        files = sorted(source.rglob("*")) if source.is_dir() else [source]
        for file in files:
            stat = file.stat()
            key.update(f"{file} {stat.st_size} {stat.st_mtime_ns}\n".encode(errors="replace"))
    return key.hexdigest()
