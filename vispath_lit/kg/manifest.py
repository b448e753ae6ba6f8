"""The manifest of a store: written last, read first, so that a half-built store never opens."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from vispath_lit.errors import DataError

NAME = "manifest.json"
FORMAT = "vispath graph store"
VERSION = 1
MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a store holds.

    Attributes:
        files: bytes of each file of the store, reference images apart.
    """

    fingerprint: str
    num_entities: int
    num_relations: int
    num_triples: int
    num_images: int
    files: dict[str, int]

    def write(self, folder: Path) -> None:
        record = {"format": FORMAT, "version": VERSION, **asdict(self)}
        (folder / NAME).write_text(json.dumps(record, indent=1) + "\n", encoding="utf8")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Reads and checks the manifest against the files beside it.

        Raises:
            DataError: no store, a foreign or damaged one, or one of another version.
        """
        record = _record(folder)
        if record.get("version") != VERSION:
            raise DataError(
                f"{folder}: a graph store of version {record.get('version')!r}, this program reads version "
                f"{VERSION}; build it again with: vispath kg build FOLDER {folder}"
            )
        counts = ("num_entities", "num_relations", "num_triples", "num_images")
        files, fingerprint = record.get("files"), record.get("fingerprint")
        for key in counts:
            if type(record.get(key)) is not int or not 0 <= int(str(record[key])) < 1 << 40:
                raise damaged(folder, f"{NAME} with {key} = {record.get(key)!r}, expected a count")
        if not isinstance(files, dict) or not files or not isinstance(fingerprint, str):
            raise damaged(folder, f"{NAME} without files or fingerprint")
        for name, size in files.items():
            found = (folder / name).stat().st_size if (folder / name).is_file() else None
            if "/" in name or "\\" in name or found != size:
                raise damaged(folder, f"{name} of {found or 'no'} bytes, expected {size}")
        entities, relations, triples, images = (int(str(record[key])) for key in counts)
        return cls(fingerprint, entities, relations, triples, images, files)


def is_store(folder: Path) -> bool:
    """Whether a folder holds a store of ours, of any version and in any state."""
    try:
        _record(folder)
    except DataError:
        return False
    return True


def damaged(folder: Path, found: str) -> DataError:
    """The error for a store that is not as it was written."""
    return DataError(
        f"{folder}: the graph store is damaged: found {found}; "
        f"build it again with: vispath kg build FOLDER {folder}"
    )


def _record(folder: Path) -> dict[str, object]:
    file = folder / NAME
    build = f"make one with: vispath kg build FOLDER {folder}"
    if not folder.is_dir():
        raise DataError(f"{folder}: no such graph store; {build}")
    if not file.is_file():
        hint = " (it looks like a graph folder: build it first)" if (folder / "triples.tsv").is_file() else ""
        raise DataError(f"{folder}: no graph store, {NAME} is missing{hint}; {build}")
    try:
        if file.stat().st_size > MAX_BYTES:
            raise damaged(folder, f"{NAME} of more than {MAX_BYTES} bytes")
        record = json.loads(file.read_text(encoding="utf8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder}: {NAME} cannot be read ({error}); {build}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DataError(f"{folder}: {NAME} is not that of a graph store; {build}")
    return record
