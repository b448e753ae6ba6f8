"""Label vectors of a graph's relations and entities: the parts from which texts are composed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.mapped_table import Kept, mapped_table, unit_floats
from vispath_lit.protocols import TextEncoder

CHUNK = 2048  # labels embedded at once


class LabelVectors:
    """SBERT of every label: all relations at once, entities when they are first asked for.

    Args:
        file: where the vectors of all entities are kept, embedded at once, so that nothing is later; None
            embeds an entity when it is first met.
        kept: numbers of that file.

    Attributes:
        relations: `[2R, d]` float32 unit rows, by signed relation.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        file: Path | None = None,
        kept: Kept = "float16",
    ) -> None:
        self.graph = graph
        self.text_encoder = text_encoder
        self.relations = text_encoder.encode(graph.relation_labels())
        self._table = None if file is None else self._whole(file, kept)
        # Zeros take no memory until they are written: a graph of millions costs what is used of it.
        met = graph.num_entities if file is None else 0
        self._rows = np.zeros((met, text_encoder.dim), dtype=np.float16)
        self._known = np.zeros(met, dtype=bool)

    def entities(self, entities: Tensor) -> Tensor:
        """`[n, d]` float32 rows of `[n]` entities; their norm is 1 up to the rounding of float16."""
        rows = entities.numpy()
        if self._table is not None:
            return torch.from_numpy(unit_floats(self._table[rows]))
        if not self._known[rows].all():
            missing = np.unique(rows[~self._known[rows]])
            vectors = self.text_encoder.encode(self.graph.labels(missing))
            self._rows[missing] = vectors.numpy().astype(np.float16)
            self._known[missing] = True
        return torch.from_numpy(self._rows[rows].astype(np.float32))

    def _whole(self, file: Path, kept: Kept) -> NDArray[Any]:
        def rows(some: slice) -> NDArray[Any]:
            return self.text_encoder.encode(self.graph.labels(range(some.start, some.stop))).numpy()

        shape = (self.graph.num_entities, self.text_encoder.dim)
        return mapped_table(file, shape, rows, CHUNK, "embedding labels", kept)
