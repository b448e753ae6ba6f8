"""What the learned parts see of relations and entities: frozen text vectors, projected.

No parameter belongs to one relation or entity, so that weights fit any graph (`transfer=true`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.remembered import made_once
from vispath_lit.protocols import TextEncoder

MAX_TYPES = 4096


class GraphFeatures(nn.Module):
    """Frozen vectors of a graph's relations and entity types; nothing of it goes into a checkpoint.

    Attributes:
        relations: `[2R, d]` vectors of the signed relations' labels.
        types: `[T, d]` vectors of the entity types; row 0 stands for no type.
        type_of: `[N]` long, the type of each entity.
    """

    relations: Tensor
    backwards: Tensor
    types: Tensor
    type_of: Tensor

    def __init__(self, graph: KnowledgeGraph, text_encoder: TextEncoder) -> None:
        super().__init__()
        names, rows = entity_types(graph)
        types = torch.zeros(1, text_encoder.dim)
        if names:
            types = torch.cat([types, text_encoder.encode(names).float()])
        relations = text_encoder.encode(graph.relation_labels()).float()
        backwards = torch.arange(len(relations)) >= graph.num_relations
        for name, table in (
            ("relations", relations),
            ("backwards", backwards.long()),
            ("types", types),
            ("type_of", torch.from_numpy(rows)),
        ):
            self.register_buffer(name, table.clone(), persistent=False)

    @property
    def dim(self) -> int:
        return int(self.relations.shape[1])


class StepEmbedding(nn.Module):
    """Signed relations and entities as `width` numbers: small networks over their frozen text vectors."""

    def __init__(self, features: GraphFeatures, width: int) -> None:
        super().__init__()
        self.features = features
        self.of_relation = nn.Sequential(nn.Linear(features.dim, width), nn.GELU(), nn.Linear(width, width))
        self.direction = nn.Embedding(2, width)
        self.of_type = nn.Linear(features.dim, width)
        nn.init.normal_(self.direction.weight, std=0.1)

    def relation_table(self) -> Tensor:
        """`[2R, width]`."""
        return made_once(self, "relations", self._relation_table)

    def type_table(self) -> Tensor:
        """`[T, width]`; index it with `features.type_of[entity]`."""
        return made_once(self, "types", self._type_table)

    def _relation_table(self) -> Tensor:
        features = self.features
        table: Tensor = self.of_relation(features.relations * features.dim**0.5)
        directed: Tensor = table + self.direction(features.backwards)
        return directed

    def _type_table(self) -> Tensor:
        table: Tensor = self.of_type(self.features.types * self.features.dim**0.5)
        return table


def entity_types(graph: KnowledgeGraph) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct type names, the most frequent first, and `[N]` each entity's row: 0 is none, i + 1 is name i.

    Of more than 4,096 distinct types the rarest count as none.
    """
    column = graph.column("type")
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    names = column.dictionary.to_pylist()
    codes = column.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(names) + 1)
    ranked = sorted(
        (i for i, name in enumerate(names) if name and counts[i]), key=lambda i: (-counts[i], names[i])
    )
    kept = ranked[:MAX_TYPES]
    row_of = np.zeros(len(names) + 1, dtype=np.int64)
    row_of[kept] = np.arange(1, len(kept) + 1)
    return [names[i] for i in kept], row_of[codes]
