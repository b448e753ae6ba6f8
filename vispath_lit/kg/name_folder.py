"""Makes the folder of a graph's name vectors, in batches, from scratch or from that of an earlier graph.

    <names of one encoder>/<graph>/
        keys, place, indptr, owners (.npy)       the names by number (kg/name_table.py)
        vectors.npy                              float16, of fewer than FLAT_BELOW names: all are compared
        codes.npy, scale.npy, quantizer.faiss    of more names: bytes and shorter codes (kg/name_codes.py)
        manifest.json                            version, counts, sizes of the other files; written last

Where the folder of another graph is there, most of whose names this graph has too (an earlier state of it,
say), its vectors are taken over, and only new names are embedded.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vispath_lit.kg import name_codes
from vispath_lit.kg.name_table import GONE, NameTable, NameTexts, arrays, map_table, name_table, positions
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.protocols import TextEncoder
from vispath_lit.whole import NO_ARRAY, folder_beside

log = logging.getLogger(__name__)
VERSION = 3
CHUNK = 2048  # names embedded at once
FLAT_BELOW = 200_000  # names; 154 MB of vectors
GROWTH = 2  # Beyond this many times the names that the quantizer was learned on, it is learned anew.
KEPT = 0.75  # Share of an earlier folder's names that this graph must have for its codes to be taken over.
MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder says of itself.

    Attributes:
        names: U, those that the graph no longer holds included.
        learned_from: names of the graph on which the quantizer was learned; 0 where there is none.
        sizes: bytes of the other files.
    """

    version: int
    names: int
    learned_from: int
    sizes: dict[str, int]


def read_manifest(folder: Path) -> Manifest | None:
    """None where the folder is missing, cut short or of another version."""
    try:
        found = Manifest(**json.loads((folder / MANIFEST).read_text(encoding="utf8")))
        whole = all((folder / Path(name).name).stat().st_size == size for name, size in found.sizes.items())
        good = whole and found.version == VERSION and min(found.names, found.learned_from) >= 0
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, AttributeError) as error:
        log.warning("%s is damaged (%r); the names are embedded again", folder / MANIFEST, error)
        return None
    return found if good else None


def vectors_of(folder: Path, shape: tuple[int, int]) -> NDArray[np.float16]:
    """The mapped vectors of a folder without codes.

    Raises:
        ValueError: not `shape`, or not float16.
        OSError: no such file.
    """
    vectors: NDArray[np.float16] = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
    if vectors.shape != shape or vectors.dtype != np.float16:
        raise ValueError(f"vectors of {vectors.dtype} and shape {vectors.shape}, expected float16 {shape}")
    return vectors


def make(folder: Path, graph: KnowledgeGraph, encoder: TextEncoder, aliases: bool) -> None:
    """Writes `folder`, in place of what is there."""
    with folder_beside(folder) as made:
        _Maker(made, graph, encoder, aliases).make(_earlier(folder))
        shutil.rmtree(folder, ignore_errors=True)
        made.replace(folder)


def _earlier(folder: Path) -> Path | None:
    """The newest whole folder beside this one."""
    found = [path for path in folder.parent.iterdir() if path != folder and not path.name.startswith(".")]
    found = [path for path in found if read_manifest(path)]
    return max(found, key=lambda path: ((path / MANIFEST).stat().st_mtime_ns, path.name), default=None)


class _Maker:
    """Fills one folder."""

    def __init__(self, made: Path, graph: KnowledgeGraph, encoder: TextEncoder, aliases: bool) -> None:
        self.made, self.graph, self.encoder, self.aliases = made, graph, encoder, aliases
        self.texts = NameTexts(graph)

    def make(self, earlier: Path | None) -> None:
        table = name_table(self.graph, self.aliases)
        before = None if earlier is None else self._usable(earlier, table)
        if len(table) < FLAT_BELOW:
            learned_from = self._flat(table, before)
        elif before is None:
            learned_from = self._coded(table)
        else:
            table = name_table(self.graph, self.aliases, before[1].keys)
            learned_from = self._grown(table, before)
        for name, array in arrays(table).items():
            np.save(self.made / f"{name}.npy", array, allow_pickle=False)
        sizes = {file.name: file.stat().st_size for file in sorted(self.made.iterdir())}
        manifest = asdict(Manifest(VERSION, len(table), learned_from, sizes))
        (self.made / MANIFEST).write_text(json.dumps(manifest), encoding="utf8")

    def _usable(self, earlier: Path, table: NameTable) -> tuple[Path, NameTable, Manifest] | None:
        """The earlier folder, if it is of the kind that this one will be and shares enough names."""
        manifest = read_manifest(earlier)
        try:
            old = map_table(earlier, np.iinfo(np.int32).max)
        except (OSError, *NO_ARRAY):
            return None
        if manifest is None or (len(table) < FLAT_BELOW) != (manifest.learned_from == 0):
            return None
        if manifest.learned_from:
            shared = int((positions(table.keys, old.keys) >= 0).sum())
            if shared < KEPT * len(old) or len(table) > GROWTH * manifest.learned_from:
                return None
        return earlier, old, manifest

    def _flat(self, table: NameTable, before: tuple[Path, NameTable, Manifest] | None) -> int:
        """float16 also when fresh, so that a kept folder answers the same."""
        shape = (len(table), self.encoder.dim)
        vectors = np.lib.format.open_memmap(
            self.made / "vectors.npy", mode="w+", dtype=np.float16, shape=shape
        )
        missing = np.arange(len(table))
        if before is not None:
            at = positions(table.keys, before[1].keys)
            old = vectors_of(before[0], (len(before[1]), self.encoder.dim))
            vectors[at >= 0] = old[at[at >= 0]]
            missing = np.flatnonzero(at < 0)
        for numbers, some in self._embedded(table, missing, "embedding entity names"):
            vectors[numbers] = some
        vectors.flush()
        return 0

    def _coded(self, table: NameTable) -> int:
        chosen = np.random.default_rng(0).permutation(len(table))[: name_codes.SAMPLE]
        parts = self._embedded(table, np.sort(chosen), "embedding a sample of names")
        learned = name_codes.train(np.concatenate([vectors for _, vectors in parts]))
        batches = self._embedded(table, np.arange(len(table)), "embedding entity names")
        name_codes.write(self.made, learned, len(table), batches)
        return len(table)

    def _grown(self, table: NameTable, before: tuple[Path, NameTable, Manifest]) -> int:
        folder, old, manifest = before
        new = np.arange(len(old), len(table))
        batches = self._embedded(table, new, "embedding new entity names")
        name_codes.grow(self.made, folder, len(table), batches)
        kept = int((table.place[: len(old)] != GONE).sum())
        log.info("%d names taken over from an earlier graph, %d new", kept, len(new))
        return manifest.learned_from

    def _embedded(
        self, table: NameTable, numbers: NDArray[np.int64], doing: str
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Names with their vectors, a chunk at a time."""
        chunks = range(0, len(numbers), CHUNK)
        for start in track(chunks, doing) if len(numbers) else chunks:
            some = numbers[start : start + CHUNK]
            texts = self.texts.many(table.place[some])
            yield some, self.encoder.encode(texts).cpu().numpy()
