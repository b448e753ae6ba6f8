"""Which pictures name the starts, and which of them the graph must do without.

A start's question shows one of its reference images. Where the entity has another, the shown one is taken out
of the graph, so that a system cannot find it by its bytes; where it has none, the question is tagged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vispath_lit.kg.store import KnowledgeGraph

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shown:
    """The picture of one start.

    Attributes:
        file: where the graph has it.
        rows: its places among the graph's reference images.
        withheld: whether the entity keeps another, so that this one is taken out.
    """

    file: str
    kind: str
    rows: tuple[int, ...]
    withheld: bool


def shown_pictures(graph: KnowledgeGraph, starts: Sequence[int]) -> dict[int, Shown]:
    """The picture of each start; rare kinds first, the earlier image on a tie.

    A picture that several entities share names none of them; a start that has no other is left out.
    """
    files, kinds = graph.image_files, graph.image_kinds
    shared = _shared(graph)
    used: Counter[str] = Counter()
    found = {}
    for start in starts:
        low, high = np.searchsorted(graph.image_entity, [start, start + 1]).tolist()
        rows = range(low, high)
        own = [row for row in rows if not shared[row]]
        if own:
            row = min(own, key=lambda row: (used[kinds[row]], row))
            same = tuple(other for other in rows if files[other] == files[row])
            used[kinds[row]] += 1
            found[start] = Shown(files[row], kinds[row], same, len(same) < len(rows))
    return found


def picturable(graph: KnowledgeGraph) -> Ints:
    """`[n]` the entities with a picture of their own, ascending."""
    return np.unique(graph.image_entity[~_shared(graph)])


def _shared(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """`[n]`: reference images whose bytes several entities have."""
    codes = np.asarray(pa.array(graph.image_files, type=pa.large_string()).dictionary_encode().indices)
    pairs = np.unique(np.stack([codes.astype(np.int64), graph.image_entity]), axis=1)
    entities_of = np.bincount(pairs[0]) if pairs.size else np.zeros(0, dtype=np.int64)
    return np.asarray(entities_of[codes] > 1)
