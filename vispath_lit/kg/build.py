"""Builds a store from a graph folder: reads and checks all of it, writes beside the target, then renames."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from vispath_lit.errors import DataError
from vispath_lit.kg.csr import Adjacency, Ints, adjacency
from vispath_lit.kg.faults import Faults, OnError
from vispath_lit.kg.fingerprint import ContentHash
from vispath_lit.kg.folder import EntityTable, FolderReader, ImageTable, RelationTable, TripleTable
from vispath_lit.kg.folding import NameHashes, name_hashes
from vispath_lit.kg.lookup import HashTable, hash_column, hash_table
from vispath_lit.kg.manifest import NAME, Manifest, is_store
from vispath_lit.progress import track
from vispath_lit.whole import folder_beside


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What became of a graph folder.

    Attributes:
        duplicate_triples: exact repetitions that were merged.
        skipped: lines left out, by file (only with `on_error=skip`).
        faults: the first 100 of them with file, line and reason.
        notices: unused and absent columns.
    """

    path: str
    fingerprint: str
    entities: int
    relations: int
    triples: int
    images: int
    duplicate_triples: int
    skipped: dict[str, int]
    faults: tuple[str, ...]
    notices: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


class GraphReader(Protocol):
    """A graph table by table, each asked for once and in this order."""

    def entities(self) -> EntityTable: ...

    def relations(self) -> RelationTable: ...

    def triples(self, entity_ids: Any, relation_ids: Any) -> TripleTable: ...

    def images(self, entity_ids: Any) -> ImageTable: ...


@dataclass(frozen=True, slots=True)
class Written:
    """A store's manifest, and the repetitions among its triples that were merged."""

    manifest: Manifest
    duplicate_triples: int


def build(folder: str | Path, out: str | Path, on_error: OnError = "fail") -> BuildReport:
    """Builds the store `out` from the graph folder `folder`; an existing store is replaced as a whole.

    Args:
        on_error: `fail` stops at the first bad line and leaves `out` as it was, `skip` leaves bad lines out.

    Raises:
        DataError: the folder is not a graph (names file, line and reason), or `out` is some other folder.
        ConfigError: another value of `on_error`.
    """
    source, target = Path(folder).absolute(), Path(out).absolute()
    reader = FolderReader(source, Faults(on_error))
    check_target(source, target)
    with replacing(target) as partial:
        return _build(reader, partial, target)


def write_store(reader: GraphReader, partial: Path) -> Written:
    """Writes a store into the empty folder `partial`; its manifest comes last."""
    content = ContentHash()
    entities, relations = reader.entities(), reader.relations()
    entity_ids, relation_ids = entities.id, relations.id
    _write_texts(partial, entities, relations, content)
    names = name_hashes(entities.label, entities.aliases)
    del entities, relations  # The texts are most of what an import holds; sorting needs none of them.
    pa.default_memory_pool().release_unused()
    _write_names(partial, names)
    del names
    duplicates, triples = _write_edges(reader, partial, entity_ids, relation_ids, content)
    images = _write_images(partial, reader.images(entity_ids), content)
    manifest = Manifest(
        content.hexdigest(),
        len(entity_ids),
        len(relation_ids),
        triples,
        images,
        {file.name: file.stat().st_size for file in sorted(partial.iterdir()) if file.is_file()},
    )
    manifest.write(partial)
    return Written(manifest, duplicates)


def _build(reader: FolderReader, partial: Path, target: Path) -> BuildReport:
    written = write_store(reader, partial)
    manifest = written.manifest
    return BuildReport(
        path=str(target),
        fingerprint=manifest.fingerprint,
        entities=manifest.num_entities,
        relations=manifest.num_relations,
        triples=manifest.num_triples,
        images=manifest.num_images,
        duplicate_triples=written.duplicate_triples,
        skipped={name: count for name, count in sorted(reader.faults.counts.items()) if count},
        faults=tuple(reader.faults.listed),
        notices=tuple(reader.notices),
    )


def _write_texts(
    partial: Path, entities: EntityTable, relations: RelationTable, content: ContentHash
) -> None:
    for name in ("id", "label", "aliases", "type", "description"):
        content.texts(f"entity/{name}", getattr(entities, name))
    for name in ("id", "label", "inverse_label"):
        content.texts(f"relation/{name}", getattr(relations, name))
    table = {name: getattr(entities, name) for name in ("id", "label", "aliases", "description")}
    _write_arrow(partial / "entities.arrow", {**table, "type": entities.type.dictionary_encode()})
    names = ("id", "label", "inverse_label")
    _write_arrow(partial / "relations.arrow", {name: getattr(relations, name) for name in names})
    rows = np.arange(len(entities.id), dtype=np.int32)
    ids = hash_table(hash_column(entities.id), rows)
    _write_lookup(partial, "id", ids)


def _write_names(partial: Path, names: NameHashes) -> None:
    """One table after the other, so that only one lies in memory."""
    _write_lookup(partial, "name", hash_table(names.hashes, names.entities))
    _write_lookup(partial, "bare", hash_table(names.bare_hashes, names.bare_entities))


def _write_edges(
    reader: GraphReader, partial: Path, entity_ids: Any, relation_ids: Any, content: ContentHash
) -> tuple[int, int]:
    """The number of merged repetitions and of distinct triples."""
    given = reader.triples(entity_ids, relation_ids)
    n, r = len(entity_ids), len(relation_ids)
    edges = adjacency(given.head, given.relation, given.tail, n, r)
    for name in ("indptr", "relation", "tail"):
        content.integers(name, getattr(edges, name))
    _write_adjacency(partial, "out", edges)
    triples = len(edges.tail)
    del edges
    _write_adjacency(partial, "in", adjacency(given.tail, given.relation, given.head, n, r))
    return len(given.head) - triples, triples


def _write_images(partial: Path, images: ImageTable, content: ContentHash) -> int:
    """Copies each distinct picture once, named by its bytes; the store is then whole by itself."""
    folder = partial / "images"
    folder.mkdir()
    order = np.argsort(images.entity, kind="stable")  # One entity's images stay in file order.
    names = [_copy_image(images.files[i], folder) for i in track(order.tolist(), "images")]
    kinds = [images.kinds[i] for i in order]
    entity = images.entity[order].astype(np.int64)
    columns = {"file": _strings(names), "kind": _strings(kinds)}
    _write_arrow(partial / "images.arrow", columns)
    _save(partial / "image_entity.npy", entity)
    content.integers("image/entity", entity)
    content.texts("image/bytes", _strings([Path(name).stem for name in names]))
    content.texts("image/kind", columns["kind"])
    return len(names)


def _copy_image(source: Path, folder: Path) -> str:
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:40]
    name = f"{digest[:2]}/{digest}{source.suffix.lower()}"
    if not (folder / name).exists():
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source, folder / name)
    return name


def _write_adjacency(partial: Path, direction: str, edges: Adjacency) -> None:
    for name in ("indptr", "relation", "tail"):
        _save(partial / f"{direction}_{name}.npy", getattr(edges, name))


def _write_lookup(partial: Path, name: str, table: HashTable) -> None:
    _save(partial / f"{name}_hash.npy", table.hashes)
    _save(partial / f"{name}_entity.npy", table.entities)


def _save(path: Path, array: Ints) -> None:
    np.save(path, array, allow_pickle=False)


def _strings(texts: list[str]) -> Any:
    return pa.array(texts, type=pa.large_string())


def _write_arrow(path: Path, columns: dict[str, Any]) -> None:
    """One record batch, so that rows are reached without a search over chunks."""
    batch = pa.record_batch(columns)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)


def check_target(source: Path, target: Path) -> None:
    """Refuses a target that holds its source, or anything but a store.

    Raises:
        DataError: another place must be named.
    """
    if source.resolve() == target.resolve() or source.resolve().is_relative_to(target.resolve()):
        raise DataError(f"{target}: cannot take the place of its source {source}; name another")
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise DataError(f"{target}: not a folder; name another place for the store")
    if target.is_dir() and any(target.iterdir()) and not is_store(target):
        raise DataError(
            f"{target}: a folder that holds something other than a graph store ({NAME} is not ours); "
            "name another, nothing in it was touched"
        )


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """An empty folder that becomes the store `target` where the block ends well.

    Raises:
        DataError: the disk refuses; an earlier store is as it was.
    """
    try:
        with folder_beside(target) as partial:
            yield partial
            replace(target, partial)
    except OSError as error:
        raise DataError(f"{target}: the store could not be built: {error}; nothing was changed") from error


def replace(target: Path, partial: Path) -> None:
    """Moves the finished store in; the old one is moved aside first and put back if that fails."""
    if not target.exists():
        partial.rename(target)
        return
    # A part of the name, as in `whole`: a long one leaves no room for the rest.
    old = Path(tempfile.mkdtemp(prefix=f".{target.name[:50]}.", suffix=".old", dir=target.parent))
    try:
        target.rename(old)
        try:
            partial.rename(target)
        except OSError:
            old.rename(target)
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
