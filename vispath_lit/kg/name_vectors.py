"""Entity names as vectors: nearest names by cosine, embedded once and cached on disk."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.protocols import TextEncoder

log = logging.getLogger(__name__)
CHUNK = 2048
FLAT_BELOW = 200_000  # Names; above, vectors are held as float16, and above a million as bytes.
BYTES_ABOVE = 1_000_000


class NameMatch(NamedTuple):
    """An entity found by one of its names, with the cosine of the two."""

    entity: int
    name: str
    score: float


class NameVectors:
    """The U distinct names of a graph in a faiss inner-product index."""

    def __init__(
        self, graph: KnowledgeGraph, encoder: TextEncoder, cache_dir: Path | None, aliases: bool
    ) -> None:
        self._encoder = encoder
        self._aliases = aliases
        self._names, self._owner_indptr, self._owners = _distinct_names(graph, aliases)
        vectors = self._load(graph, cache_dir)
        self._index = _index(vectors)

    def search(self, texts: Sequence[str], k: int) -> list[list[NameMatch]]:
        """For each text at most k entities, best first; ties by name, then entity, in the graph's order."""
        if not texts:
            return []
        queries = np.ascontiguousarray(self._encoder.encode(texts).cpu().numpy(), dtype=np.float32)
        fetch = min(len(self._names), 4 * k + 8 if self._aliases else k)
        scores, rows = self._index.search(queries, fetch)
        return [self._matches(s, r, k) for s, r in zip(scores, rows, strict=True)]

    def _matches(self, scores: NDArray[np.float32], rows: NDArray[np.int64], k: int) -> list[NameMatch]:
        best: dict[int, NameMatch] = {}
        for i in np.lexsort((rows, -scores)).tolist():
            row = int(rows[i])
            if row < 0:
                continue
            name = str(self._names[row].as_py())
            for entity in self._owners[self._owner_indptr[row] : self._owner_indptr[row + 1]].tolist():
                best.setdefault(entity, NameMatch(entity, name, float(scores[i])))
            if len(best) >= k:
                break
        return list(best.values())[:k]

    def _load(self, graph: KnowledgeGraph, cache_dir: Path | None) -> NDArray[np.float16]:
        """`[U, d]`; rounded to float16 also when fresh, so that a cached index answers the same."""
        if cache_dir is None:
            return self._embed()
        key = f"{graph.fingerprint}/{self._encoder.fingerprint}/{self._aliases}/1"
        file = Path(cache_dir) / f"names-{hashlib.sha256(key.encode()).hexdigest()[:24]}.npy"
        cached = _cached(file, (len(self._names), self._encoder.dim))
        if cached is not None:
            return cached
        vectors = self._embed()
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=file.parent, suffix=".partial", delete=False) as partial:
            np.save(partial, vectors, allow_pickle=False)
        Path(partial.name).replace(file)
        return vectors

    def _embed(self) -> NDArray[np.float16]:
        vectors = np.empty((len(self._names), self._encoder.dim), dtype=np.float16)
        for start in track(range(0, len(self._names), CHUNK), "embedding entity names"):
            texts = self._names.slice(start, CHUNK).to_pylist()
            vectors[start : start + len(texts)] = self._encoder.encode(texts).cpu().numpy()
        return vectors


def _distinct_names(graph: KnowledgeGraph, aliases: bool) -> tuple[Any, NDArray[np.int64], NDArray[np.int32]]:
    """The U names in order of first appearance and, as CSR, the entities that bear each."""
    own = np.arange(graph.num_entities, dtype=np.int32)
    texts, entities = graph.column("label"), own
    if aliases:
        lists = graph.column("aliases")
        count = np.asarray(pc.list_value_length(lists).to_numpy(zero_copy_only=False), dtype=np.int64)
        texts = pa.concat_arrays([texts, lists.flatten()])
        entities = np.concatenate([own, np.repeat(own, count)])
    encoded = texts.dictionary_encode()
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    indptr = np.zeros(len(encoded.dictionary) + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=len(encoded.dictionary)), out=indptr[1:])
    return encoded.dictionary, indptr, entities[np.lexsort((entities, codes))]


def _cached(file: Path, shape: tuple[int, int]) -> NDArray[np.float16] | None:
    if not file.is_file():
        return None
    try:
        vectors: NDArray[np.float16] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        log.warning("%s is damaged (%s); the names are embedded again", file, error)
        return None
    if vectors.shape != shape or vectors.dtype != np.float16:
        log.warning("%s holds %s, expected %s; the names are embedded again", file, vectors.shape, shape)
        return None
    return vectors


def _index(vectors: NDArray[np.float16]) -> Any:
    count, dim = vectors.shape
    if count < FLAT_BELOW:
        index: Any = faiss.IndexFlatIP(dim)
    else:
        kind = faiss.ScalarQuantizer
        quantizer = kind.QT_8bit if count > BYTES_ABOVE else kind.QT_fp16
        index = faiss.IndexScalarQuantizer(dim, quantizer, faiss.METRIC_INNER_PRODUCT)
        index.train(vectors[:: max(1, count // FLAT_BELOW)].astype(np.float32))
    for start in range(0, count, 1 << 16):
        index.add(np.ascontiguousarray(vectors[start : start + (1 << 16)], dtype=np.float32))
    return index
