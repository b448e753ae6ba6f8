"""Composed vectors of all edges of a graph: composed once, kept as a memory-mapped file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.mapped_table import Kept, mapped_table, unit_floats
from vispath_lit.models.texts.blocks import blockwise
from vispath_lit.models.texts.composers import EdgeComposer
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.types import Rows

CHUNK = 8192  # pairs composed at once
MARKED = 16  # times the pairs of a call that a table may have to be marked as a whole


class EdgeTable:
    """Unit vectors of (signed relation, tail) pairs.

    Args:
        file: where the vectors of all pairs of the graph are kept; None composes each call anew.
        limit: bytes that the file may have; a larger table is not made, each call composes anew.
        kept: numbers of the file.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        labels: LabelVectors,
        composer: EdgeComposer,
        file: Path | None,
        limit: int,
        kept: Kept = "float16",
    ) -> None:
        self.relations = 2 * graph.num_relations
        self.labels = labels
        self.composer = composer
        with torch.no_grad():
            self._relation_parts = blockwise(composer.relation_part, labels.relations)
        self.pairs: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.table: NDArray[Any] | None = None
        # A triple gives one pair in each direction, at most.
        if file is not None and 2 * graph.num_triples * composer.dim * np.dtype(kept).itemsize <= limit:
            self.pairs = graph_pairs(graph)
            self.table = mapped_table(
                file,
                (len(self.pairs), composer.dim),
                lambda some: self.compose(self.pairs[some]).numpy(),
                CHUNK,
                "composing edges",
                kept,
            )

    def rows(self, relation: Tensor, tail: Tensor) -> Rows:
        """A row for each of `[E]` pairs; equal pairs share it."""
        keys = (tail * self.relations + relation).numpy()
        if self.table is not None and len(self.pairs):
            place = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
            if (self.pairs[place] == keys).all():
                used, index = _distinct(place, len(self.pairs))
                vectors = torch.from_numpy(unit_floats(self.table[used]))
                return Rows(vectors, torch.from_numpy(index))
        distinct, inverse = np.unique(keys, return_inverse=True)
        vectors = torch.empty(len(distinct), self.composer.dim)
        for low in range(0, len(distinct), CHUNK):  # Parts are twice as wide as vectors.
            vectors[low : low + CHUNK] = self.compose(distinct[low : low + CHUNK])
        return Rows(vectors, torch.from_numpy(inverse))

    @torch.no_grad()
    def compose(self, pairs: NDArray[np.int64]) -> Tensor:
        """`[n, d]` of `[n]` pairs `tail * 2R + relation`."""
        tail, index = np.unique(pairs // self.relations, return_inverse=True)
        parts = blockwise(self.composer.tail_part, self.labels.entities(torch.from_numpy(tail)))
        relation = torch.from_numpy(pairs % self.relations)
        return blockwise(self.composer.join, parts[torch.from_numpy(index)] + self._relation_parts[relation])


def _distinct(place: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct places below `size`, ascending, and `[n]` which of them each place is."""
    if size > MARKED * len(place):
        return np.unique(place, return_inverse=True)
    used = np.zeros(size, dtype=bool)  # Marking and counting needs no sort.
    used[place] = True
    return np.flatnonzero(used), (np.cumsum(used) - 1)[place]


def graph_pairs(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """`[U]` sorted distinct `tail * 2R + signed relation` of all edges in both directions."""
    relations = 2 * graph.num_relations
    forward = graph.out_tail.astype(np.int64) * relations + graph.out_relation
    backward = graph.in_tail.astype(np.int64) * relations + graph.in_relation + graph.num_relations
    return np.unique(np.concatenate([forward, backward]))
