"""Label vectors of a graph's relations and entities: the parts from which texts are composed."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import TextEncoder


class LabelVectors:
    """SBERT of every label: all relations at once, entities when they are first asked for.

    Attributes:
        relations: `[2R, d]` float32 unit rows, by signed relation.
    """

    def __init__(self, graph: KnowledgeGraph, text_encoder: TextEncoder) -> None:
        self.graph = graph
        self.text_encoder = text_encoder
        self.relations = text_encoder.encode(graph.relation_labels())
        # Zeros take no memory until they are written: a graph of millions costs what is used of it.
        self._rows = np.zeros((graph.num_entities, text_encoder.dim), dtype=np.float16)
        self._known = np.zeros(graph.num_entities, dtype=bool)

    def entities(self, entities: Tensor) -> Tensor:
        """`[n, d]` float32 rows of `[n]` entities; their norm is 1 up to the rounding of float16."""
        rows = entities.numpy()
        if not self._known[rows].all():
            missing = np.unique(rows[~self._known[rows]])
            vectors = self.text_encoder.encode(self.graph.labels(missing))
            self._rows[missing] = vectors.numpy().astype(np.float16)
            self._known[missing] = True
        return torch.from_numpy(self._rows[rows].astype(np.float32))
