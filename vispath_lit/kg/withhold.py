"""A store without some of its reference images: what a benchmark asks with must not lie in the gallery."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vispath_lit.kg.build import check_target, replacing
from vispath_lit.kg.fingerprint import ContentHash
from vispath_lit.kg.manifest import Manifest
from vispath_lit.kg.store import KnowledgeGraph

IMAGES = ("image_entity.npy", "images.arrow")


def without_images(graph: KnowledgeGraph, rows: NDArray[np.int64], out: Path) -> KnowledgeGraph:
    """Writes the store `out`: the graph without the reference images at `rows`; everything else is equal.

    Files that stay the same are linked where the disk can, as nobody writes into a store.

    Args:
        rows: distinct positions in `graph.image_entity`; with none the copy has the graph's fingerprint.

    Raises:
        DataError: `out` is the graph itself or something that is no store, or cannot be written.
    """
    target = out.absolute()
    check_target(graph.path, target)
    with replacing(target) as partial:
        _write(graph, rows, partial)
    return KnowledgeGraph.open(target)


def _write(graph: KnowledgeGraph, rows: NDArray[np.int64], partial: Path) -> None:
    manifest = Manifest.read(graph.path)
    kept = np.delete(np.arange(len(graph.image_entity)), rows)
    root = graph.path / "images"
    files = [Path(graph.image_files[i]).relative_to(root).as_posix() for i in kept.tolist()]
    kinds = [graph.image_kinds[i] for i in kept.tolist()]
    for name in manifest.files.keys() - set(IMAGES):
        _same(graph.path / name, partial / name)
    (partial / "images").mkdir()
    for file in dict.fromkeys(files):
        (partial / "images" / file).parent.mkdir(parents=True, exist_ok=True)
        _same(root / file, partial / "images" / file)
    entity = graph.image_entity[kept]
    np.save(partial / IMAGES[0], entity, allow_pickle=False)
    batch = pa.record_batch({"file": _column(files), "kind": _column(kinds)})
    with pa.OSFile(str(partial / IMAGES[1]), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    Manifest(
        _fingerprint(graph, entity, files, kinds),
        manifest.num_entities,
        manifest.num_relations,
        manifest.num_triples,
        len(files),
        {file.name: file.stat().st_size for file in sorted(partial.iterdir()) if file.is_file()},
    ).write(partial)


def _same(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _fingerprint(graph: KnowledgeGraph, entity: NDArray[np.int64], files: list[str], kinds: list[str]) -> str:
    """As the build hashes it, from the same columns in the same order."""
    content = ContentHash()
    for name in ("id", "label", "aliases", "type", "description"):
        content.texts(f"entity/{name}", _plain(graph.column(name)))
    for name in ("id", "label", "inverse_label"):
        content.texts(f"relation/{name}", graph.relation_column(name))
    for name in ("indptr", "relation", "tail"):
        content.integers(name, getattr(graph, f"out_{name}"))
    content.integers("image/entity", entity)
    content.texts("image/bytes", _column([Path(file).stem for file in files]))
    content.texts("image/kind", _column(kinds))
    return content.hexdigest()


def _column(texts: list[str]) -> Any:
    return pa.array(texts, type=pa.large_string())


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
