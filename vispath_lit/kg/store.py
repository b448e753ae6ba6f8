"""The graph on disk: both directions as memory-mapped CSR arrays, texts in memory-mapped Arrow.

A store is one folder and may be moved or mounted read-only:
    manifest.json               format, version, counts, fingerprint, sizes of the other files; written last
    {out,in}_{indptr,relation,tail}.npy     the edges (kg/csr.py)
    entities.arrow              id, label, aliases, type, description
    relations.arrow             id, label, inverse_label
    image_entity.npy, images.arrow, images/ reference images, copied in and named by their content
    {id,name,bare}_{hash,entity}.npy        look-up of ids and folded names (kg/lookup.py, kg/folding.py)
Nothing in it is executed or unpickled.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.errors import DataError, UnknownEntityError
from vispath_lit.kg.csr import Ints
from vispath_lit.kg.lookup import HashTable
from vispath_lit.kg.manifest import Manifest, damaged
from vispath_lit.whole import NO_ARRAY

FULLY_CHECKED = 64 << 20  # Bytes of the largest file whose every offset or index is checked on opening.
COLUMNS = {
    "entities": ("id", "label", "aliases", "type", "description"),
    "relations": ("id", "label", "inverse_label"),
    "images": ("file", "kind"),
}
PICTURE = r"^[0-9a-f]{2}/[0-9a-f]{40}(\.[^/]*)?$"  # As a build names them: none leads out of the store.
INVERSE = "~"  # Before a relation's id: walked backwards.


class KnowledgeGraph:
    """N entities, R relations, T triples; opened with `KnowledgeGraph.open`.

    Attributes:
        path: the store's folder.
        fingerprint: hash of the graph's content, whatever folder it lies in.
        out_indptr, in_indptr: `[N + 1]` int64.
        out_relation, in_relation: `[T]` uint16 or int32, unsigned relation of each edge.
        out_tail, in_tail: `[T]` int32, the entity at the other end; rows sorted by relation, then tail.
        image_entity: `[n]` int64, the entity of each reference image, ascending.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.fingerprint = manifest.fingerprint
        self.num_entities = manifest.num_entities
        self.num_relations = manifest.num_relations
        self.num_triples = manifest.num_triples
        n, t = self.num_entities, self.num_triples
        self.out_indptr: NDArray[np.int64] = self._array("out_indptr", n + 1)
        self.out_relation: Ints = self._array("out_relation", t)
        self.out_tail: Ints = self._array("out_tail", t)
        self.in_indptr: NDArray[np.int64] = self._array("in_indptr", n + 1)
        self.in_relation: Ints = self._array("in_relation", t)
        self.in_tail: Ints = self._array("in_tail", t)
        for indptr in (self.out_indptr, self.in_indptr):
            if indptr[0] != 0 or indptr[-1] != t:
                raise damaged(path, f"a row index that ends at {indptr[-1]} where there are {t} triples")
        self._check_edges()
        self.image_entity: NDArray[np.int64] = self._array("image_entity", manifest.num_images)
        self._tables = {name: self._table(name) for name in ("id", "name", "bare")}
        self._entities = self._texts("entities", n)
        self._relations = self._texts("relations", self.num_relations)
        self._images = self._texts("images", manifest.num_images)
        self._check_images()

    @classmethod
    def open(cls, path: str | Path) -> KnowledgeGraph:
        """Maps a store that `vispath kg build` wrote.

        Raises:
            DataError: no store there, one of another version, or one with missing or truncated files.
        """
        folder = Path(path).absolute()
        return cls(folder, Manifest.read(folder))

    def __reduce__(self) -> tuple[Any, ...]:
        """Worker processes map the store again instead of receiving a copy."""
        return KnowledgeGraph.open, (self.path,)

    def table(self, name: str) -> HashTable:
        """The look-up table `id`, `name` or `bare`."""
        return self._tables[name]

    # Entities

    def entity_index(self, id: str) -> int:
        """The index of an entity's id.

        Raises:
            UnknownEntityError: the graph does not hold it.
        """
        found = self.entity_indices([id])[0]
        if found < 0:
            raise UnknownEntityError(
                f"entity {id[:200]!r} is not in the graph {self.path} ({self.num_entities} entities); "
                "give an id from the first column of its entities.tsv, not a label"
            )
        return int(found)

    def entity_indices(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """`[n]`: the index of each id, -1 where the graph does not hold it."""
        found = np.full(len(ids), -1, dtype=np.int64)
        for i, candidates in enumerate(self.table("id").find(ids)):
            for entity in candidates.tolist():
                if self.entity_id(entity) == ids[i]:
                    found[i] = entity
        return found

    def entity_id(self, entity: int) -> str:
        return str(self._cell("id", entity))

    def entity_ids(self, indices: Sequence[int] | Ints | Tensor) -> list[str]:
        return _take(self._entities["id"], indices)

    def label(self, entity: int) -> str:
        return str(self._cell("label", entity))

    def labels(self, indices: Sequence[int] | Ints | Tensor) -> list[str]:
        return _take(self._entities["label"], indices)

    def aliases(self, entity: int) -> tuple[str, ...]:
        return tuple(self._cell("aliases", entity))

    def type_of(self, entity: int) -> str:
        return str(self._cell("type", entity))

    def types(self, indices: Sequence[int] | Ints | Tensor) -> list[str]:
        return _take(self._entities["type"], indices)

    def description(self, entity: int) -> str:
        return str(self._cell("description", entity))

    def descriptions(self, indices: Sequence[int] | Ints | Tensor) -> list[str]:
        return _take(self._entities["description"], indices)

    def column(self, name: str) -> Any:
        """A whole text column (`id`, `label`, `aliases`, `type`, `description`) as a mapped Arrow array."""
        return self._entities[name]

    def relation_column(self, name: str) -> Any:
        """A whole text column of the relations (`id`, `label`, `inverse_label`) as a mapped Arrow array."""
        return self._relations[name]

    def _cell(self, name: str, entity: int) -> Any:
        if not 0 <= entity < self.num_entities:  # Arrow would count a negative index from the end.
            raise UnknownEntityError(f"entity index {entity}; expected 0 to {self.num_entities - 1}")
        return self._entities[name][int(entity)].as_py()

    def out_degrees(self) -> NDArray[np.int64]:
        """`[N]`: triples with each entity as subject."""
        return np.diff(self.out_indptr)

    def in_degrees(self) -> NDArray[np.int64]:
        """`[N]`: triples with each entity as object."""
        return np.diff(self.in_indptr)

    def degrees(self) -> NDArray[np.int64]:
        """`[N]`: edges of each entity in both directions; a self loop counts twice."""
        return self.out_degrees() + self.in_degrees()

    # Relations, signed: r forwards, R + r backwards.

    @cached_property
    def _relation_ids(self) -> dict[str, int]:
        return {id: index for index, id in enumerate(self._relations["id"].to_pylist())}

    def relation_index(self, id: str) -> int:
        """The signed relation of `id` or `~id`.

        Raises:
            UnknownEntityError: the graph does not hold it.
        """
        name = id.removeprefix(INVERSE)
        index = self._relation_ids.get(name)
        if index is None:
            near = difflib.get_close_matches(name[:200], self._relation_ids, n=3)
            hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
            raise UnknownEntityError(
                f"relation {name[:200]!r} is not one of the {self.num_relations} of {self.path}{hint}"
            )
        return index + self.num_relations * id.startswith(INVERSE)

    def relation_id(self, signed: int) -> str:
        """`id`, or `~id` for an inverse relation."""
        r, inverse = self._unsigned(signed)
        return INVERSE * inverse + str(self._relations["id"][r].as_py())

    def relation_label(self, signed: int) -> str:
        """The label; of an inverse relation its inverse label, "inverse of X" where the graph has none."""
        self._unsigned(signed)
        return self.relation_labels()[int(signed)]

    def relation_labels(self) -> list[str]:
        """The `[2R]` labels in the order of signed relations."""
        return self._relation_labels

    @cached_property
    def _relation_labels(self) -> list[str]:
        forward: list[str] = self._relations["label"].to_pylist()
        inverse: list[str] = self._relations["inverse_label"].to_pylist()
        return forward + [i or f"inverse of {f}" for f, i in zip(forward, inverse, strict=True)]

    def _unsigned(self, signed: int) -> tuple[int, bool]:
        if not 0 <= signed < 2 * self.num_relations:
            raise UnknownEntityError(f"signed relation {signed}; expected 0 to {2 * self.num_relations - 1}")
        return int(signed) % self.num_relations, int(signed) >= self.num_relations

    # Reference images

    @cached_property
    def image_files(self) -> list[str]:
        """`[n]` absolute paths, in the order of `image_entity`."""
        root = self.path / "images"
        return [str(root / name) for name in self._images["file"].to_pylist()]

    @cached_property
    def image_kinds(self) -> list[str]:
        """`[n]` kinds, in the order of `image_entity`."""
        return list(self._images["kind"].to_pylist())

    def images_of(self, entity: int) -> list[tuple[str, str]]:
        """(path, kind) of an entity's reference images, in the order in which images.tsv lists them."""
        low, high = np.searchsorted(self.image_entity, [entity, entity + 1]).tolist()
        files = self._images["file"].slice(low, high - low).to_pylist()
        kinds = self._images["kind"].slice(low, high - low).to_pylist()
        return [(str(self.path / "images" / file), kind) for file, kind in zip(files, kinds, strict=True)]

    # Files

    def _table(self, name: str) -> HashTable:
        hashes = self._array(f"{name}_hash")
        return HashTable(hashes, self._array(f"{name}_entity", len(hashes)))

    def _array(self, name: str, length: int | None = None) -> Any:
        file = self.path / f"{name}.npy"
        try:
            array = np.load(file, mmap_mode="r", allow_pickle=False)
        except (OSError, *NO_ARRAY) as error:
            raise damaged(self.path, f"{file.name}: {error}") from error
        if array.ndim != 1 or array.dtype.kind not in "iu" or (length is not None and len(array) != length):
            raise damaged(
                self.path,
                f"{file.name} of {array.dtype} and shape {array.shape}, expected {length or 'n'} integers",
            )
        return array.view(np.ndarray)  # A memmap's slices carry Python overhead that hot loops feel.

    def _texts(self, name: str, length: int) -> dict[str, Any]:
        file = self.path / f"{name}.arrow"
        try:
            table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
            # Crafted offsets would make Arrow read outside its buffers. All are checked where that is quick;
            # of a large graph only the ends, so that it still opens at once.
            table.validate(full=file.stat().st_size <= FULLY_CHECKED)
        except (OSError, ValueError, pa.ArrowException) as error:  # A column's name may be no text.
            raise damaged(self.path, f"{file.name}: {error}") from error
        if table.num_rows != length:
            raise damaged(self.path, f"{file.name} with {table.num_rows} rows, expected {length}")
        columns = dict(zip(table.column_names, table.columns, strict=True))
        if not columns.keys() >= set(COLUMNS[name]) or any(c.num_chunks > 1 for c in table.columns):
            found = f"{file.name} with the columns {', '.join(columns)}"
            raise damaged(self.path, f"{found}, expected {', '.join(COLUMNS[name])} in one piece")
        return {key: c.chunk(0) if c.num_chunks else pa.array([], c.type) for key, c in columns.items()}

    def _check_edges(self) -> None:
        """Numpy would count a negative index from the end, and so walk to entities that no edge leads to.

        As of texts, all is looked at where that is quick.
        """
        if self.out_tail.nbytes > FULLY_CHECKED:
            return
        for name, limit in (("tail", self.num_entities), ("relation", self.num_relations)):
            for direction in ("out", "in"):
                values = getattr(self, f"{direction}_{name}")
                if len(values) and not 0 <= int(values.min()) <= int(values.max()) < limit:
                    found = f"{direction}_{name}.npy with {values.min()} to {values.max()}"
                    raise damaged(self.path, f"{found}, expected 0 to {limit - 1}")
        for direction in ("out", "in"):
            if (np.diff(getattr(self, f"{direction}_indptr")) < 0).any():
                raise damaged(self.path, f"{direction}_indptr.npy with rows that end before they begin")

    def _check_images(self) -> None:
        """A crafted store must not make a program open, and show, whatever picture lies on a disk."""
        try:
            named = pc.match_substring_regex(self._images["file"], PICTURE)
        except pa.ArrowException as error:
            raise damaged(self.path, f"images.arrow: {error}") from error
        # To fill the nulls, pyarrow would import pandas, which takes longer than all the rest.
        if not pc.all(named, min_count=0, skip_nulls=False).as_py():
            row = pc.index(pc.fill_null(named, False), False).as_py()
            raise damaged(self.path, f"images.arrow with the file {self._images['file'][row].as_py()!r:.200}")
        owner = self.image_entity
        inside = not len(owner) or (owner[0] >= 0 and owner[-1] < self.num_entities)
        if not inside or (np.diff(owner) < 0).any():
            raise damaged(self.path, "image_entity.npy with entities out of order, or not of the graph")


def _take(column: Any, indices: Iterable[int] | Ints | Tensor) -> list[str]:
    rows = np.asarray(indices, dtype=np.int64)
    if rows.ndim != 1:
        raise DataError(f"indices of shape {rows.shape}; expected one dimension")
    taken = column.take(pa.array(rows))
    if pa.types.is_dictionary(taken.type):
        taken = taken.dictionary_decode()
    texts: list[str] = taken.to_pylist()
    return texts
