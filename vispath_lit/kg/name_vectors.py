"""Entity names as vectors: nearest names by cosine, from a folder that is made once and mapped."""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from vispath_lit.kg.name_codes import CodedNames
from vispath_lit.kg.name_folder import VERSION, make, read_manifest, vectors_of
from vispath_lit.kg.name_table import GONE, NameTable, NameTexts, map_table
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import TextEncoder
from vispath_lit.whole import NO_ARRAY

log = logging.getLogger(__name__)


class NameMatch(NamedTuple):
    """An entity found by one of its names, with the cosine of the two."""

    entity: int
    name: str
    score: float


class NameVectors:
    """The U distinct names of a graph with a vector each.

    Args:
        cache_dir: where the folder is kept; None makes it in a temporary place for this object alone.
        aliases: whether aliases are names too.
    """

    def __init__(
        self, graph: KnowledgeGraph, encoder: TextEncoder, cache_dir: Path | None, aliases: bool
    ) -> None:
        self._graph, self._encoder, self._aliases = graph, encoder, aliases
        self._texts = NameTexts(graph)
        if cache_dir is None:
            root = Path(tempfile.mkdtemp(prefix="vispath-names-"))
            weakref.finalize(self, shutil.rmtree, root, ignore_errors=True)
        else:
            kind = hashlib.sha256(f"{encoder.fingerprint}/{aliases}/{VERSION}".encode()).hexdigest()[:24]
            root = cache_dir / "names" / kind
        self.folder = root / graph.fingerprint
        self.table, self._index = self._open_or_make()

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """For each text at most k entities, best first; ties by the names' numbers, then by entity."""
        if not texts:
            return []
        fetch = 4 * k + 8 if self._aliases else k  # Several aliases may be one entity's.
        scores, numbers = self.nearest(self._encoder.encode(texts).cpu().numpy(), fetch)
        return [self._matches(s, n, k) for s, n in zip(scores, numbers, strict=True)]

    def nearest(self, queries: NDArray[Any], k: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Cosines and numbers `[n, k]` of the names nearest to `[n, d]` unit vectors.

        At most U columns; -1 where there are fewer.
        """
        asked = np.ascontiguousarray(queries, dtype=np.float32)
        scores, numbers = self._index.search(asked, min(len(self.table), k))
        return scores, numbers

    @property
    def nbytes(self) -> int:
        """Bytes of the folder."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def _matches(self, scores: NDArray[np.float32], numbers: NDArray[np.int64], k: int) -> list[NameMatch]:
        best: dict[int, NameMatch] = {}
        for i in np.lexsort((numbers, -scores)).tolist():
            number = int(numbers[i])
            if number < 0:
                continue
            name = self._texts[int(self.table.place[number])]
            for entity in self.table.owners_of(number):
                best.setdefault(entity, NameMatch(entity, name, float(scores[i])))
            if len(best) >= k:
                break
        return list(best.values())[:k]

    def _open_or_make(self) -> tuple[NameTable, Any]:
        opened = self._open()
        if opened is None:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            # Of several processes that need it one works and the others wait for its folder.
            with FileLock(self.folder.with_name(f"{self.folder.name}.lock")):
                opened = self._open()
                if opened is None:
                    make(self.folder, self._graph, self._encoder, self._aliases)
                    opened = self._open()
        assert opened is not None, f"{self.folder}: written, and yet not to be read"
        return opened

    def _open(self) -> tuple[NameTable, Any] | None:
        manifest = read_manifest(self.folder)
        if manifest is None:
            return None
        dim = self._encoder.dim
        try:
            table = map_table(self.folder, self._graph.num_entities)
            if not manifest.learned_from:
                return table, _flat(vectors_of(self.folder, (len(table), dim)))
            alive = table.place != GONE
            return table, CodedNames(self.folder, dim, len(table), None if alive.all() else alive)
        except (OSError, RuntimeError, *NO_ARRAY) as error:
            log.warning("%s is damaged (%s); the names are embedded again", self.folder, error)
            return None


def _flat(vectors: NDArray[np.float16]) -> Any:
    """An index that compares all names."""
    index = faiss.IndexFlatIP(vectors.shape[1])
    for start in range(0, len(vectors), 1 << 16):
        index.add(np.ascontiguousarray(vectors[start : start + (1 << 16)], dtype=np.float32))
    return index
