"""The store of a user's graph folder, built once into a cache and found again by the folder's content."""

from __future__ import annotations

from pathlib import Path

import xxhash

from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.manifest import is_store

TABLES = ("triples.tsv", "entities.tsv", "relations.tsv", "images.tsv")
CHUNK = 1 << 20


def store_of(graph: str | Path, cache_dir: str | Path, on_error: OnError = "fail") -> Path:
    """A built store as it is; for a graph folder the store in the cache, built where it is missing.

    Raises:
        DataError: no such folder, or a malformed one.
    """
    folder = Path(graph).expanduser().resolve()
    if not folder.is_dir():
        raise DataError(f"{folder} is no folder: expected a graph folder with {TABLES[0]}, or a built store")
    if is_store(folder):
        return folder
    try:
        key = folder_key(folder)
    except OSError as error:
        raise DataError(f"{error.filename or folder}: cannot be read ({error.strerror})") from error
    store = Path(cache_dir).expanduser() / "stores" / f"{key}-{on_error}"
    if not is_store(store):
        build(folder, store, on_error=on_error)
    return store


def folder_key(folder: Path) -> str:
    """Hash of the tables' bytes, and of names, sizes and times of the other files (pictures may be many)."""
    key = xxhash.xxh3_128()
    for name in TABLES:
        file = folder / name
        key.update(f"{name} {file.is_file()}\n".encode())
        if file.is_file():
            with file.open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    key.update(chunk)
    others = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in TABLES)
    for path in others:
        stat = path.stat()
        key.update(f"{path.relative_to(folder)} {stat.st_size} {stat.st_mtime_ns}\n".encode(errors="replace"))
    return key.hexdigest()
