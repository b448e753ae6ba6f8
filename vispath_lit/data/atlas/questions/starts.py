"""Where questions may start, and which splits a start may serve.

A start belongs to one pool (train, val or test) by a hash of an id, so that a fact added to the graph
moves no other entity. Pictures drawn on a country's outline, and what leads to one country only (its
currency, a language), go with that country: the cues of a split then concern countries of that split.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xxhash

from vispath_lit.data.bench.walks import Ints
from vispath_lit.kg.store import KnowledgeGraph

POOLS = (("train", 60), ("val", 10), ("test", 30))
"""Pools with their share of the starts in percent."""

CAPPED = {"county": 300, "compound": 300, "city": 700, "airport": 300, "volcano": 300}
"""Most starts of the types that would drown the rest."""

HOME = {
    "city_locator": "in_country",
    "airport_locator": "in_country",
    "volcano_locator": "in_country",
    "currency_sign": "issued_by",
    "language_name": "principal_country",
}
"""Kinds of picture whose entities go with their country, and the relation that leads there."""


@dataclass(frozen=True, slots=True)
class Starts:
    """The start entities.

    Attributes:
        files: entity to kind of picture to reference files.
        pool: entity to pool.
    """

    files: Mapping[int, Mapping[str, Sequence[str]]]
    pool: Mapping[int, str]

    def of(self, pool: str) -> Ints:
        """The starts of a pool, ascending."""
        return np.array([e for e in sorted(self.files) if self.pool[e] == pool], dtype=np.int64)

    def kinds(self) -> dict[int, list[str]]:
        """The kinds of picture of each start, sorted."""
        return {entity: sorted(kinds) for entity, kinds in self.files.items()}


def share(key: str, seed: int) -> int:
    """A number in [0, 100) that depends on the key and the seed alone."""
    return hashed(key, seed) % 100


def hashed(key: str, seed: int) -> int:
    """64 bits that depend on the key and the seed alone."""
    return xxhash.xxh3_64_intdigest(f"{seed}|{key}".encode())


def pool_of(key: str, seed: int) -> str:
    """The pool of whatever `key` names."""
    number = share(key, seed)
    for name, width in POOLS:
        if number < width:
            return name
        number -= width
    raise AssertionError("the pools add up to 100")


def find_starts(graph: KnowledgeGraph, kinds: Collection[str], seed: int) -> Starts:
    """All entities with a picture of one of `kinds`, capped by type.

    Args:
        kinds: the kinds that can be put into words.
    """
    files: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    rows = zip(graph.image_entity.tolist(), graph.image_kinds, graph.image_files, strict=True)
    for entity, kind, file in rows:
        if kind in kinds:
            files[entity][kind].append(file)
    kept = _capped(graph, sorted(files), seed)
    pool = {entity: pool_of(_pool_key(graph, entity, files[entity]), seed) for entity in kept}
    return Starts({entity: {k: tuple(f) for k, f in files[entity].items()} for entity in kept}, pool)


def _capped(graph: KnowledgeGraph, entities: list[int], seed: int) -> list[int]:
    by_type: dict[str, list[int]] = defaultdict(list)
    for entity, type_ in zip(entities, graph.types(entities), strict=True):
        by_type[type_].append(entity)
    kept: list[int] = []
    for type_, members in sorted(by_type.items()):
        cap = CAPPED.get(type_, len(members))
        members.sort(key=lambda e: hashed(graph.entity_id(e), seed))
        kept.extend(members[:cap])
    return sorted(kept)


def _pool_key(graph: KnowledgeGraph, entity: int, kinds: Collection[str]) -> str:
    """The id that decides the pool: that of its country for the kinds of `HOME`, else the entity's own."""
    for kind in sorted(HOME.keys() & set(kinds)):
        home = sole_tail(graph, entity, graph.relation_index(HOME[kind]))
        if home is not None:
            return graph.entity_id(home)
    return graph.entity_id(entity)


def sole_tail(graph: KnowledgeGraph, entity: int, relation: int) -> int | None:
    """The one object of a relation at an entity, or None where there is none or several."""
    low, high = graph.out_indptr[entity : entity + 2].tolist()
    rows = low + np.flatnonzero(graph.out_relation[low:high] == relation)
    return int(graph.out_tail[rows[0]]) if len(rows) == 1 else None
