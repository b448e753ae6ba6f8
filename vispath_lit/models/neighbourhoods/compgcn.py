"""A CompGCN-style layer: a neighbour's message is composed with its relation, then averaged."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch_geometric.nn import MessagePassing

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.protocols import TextEncoder


class Composition(MessagePassing):  # type: ignore[misc]
    """Mean of neighbour ∘ relation, the composition by multiplication of Vashishth et al. 2020."""

    def __init__(self) -> None:
        super().__init__(aggr="mean")

    def forward(self, nodes: Tensor, centres: Tensor, edges: Tensor, told: Tensor) -> Tensor:
        """`[n, width]`; `told` is `[M, width]`, one relation an edge."""
        heard: Tensor = self.propagate(edges, x=(nodes, centres), told=told, size=(len(nodes), len(centres)))
        return heard

    def message(self, x_j: Tensor, told: Tensor) -> Tensor:
        return x_j * told


class CompGCNNeighbourhood(EgoGraphEncoder):
    """One layer that costs two products an edge; see `EgoGraphEncoder`.

    Directions need no weights of their own: they are part of the relation's vector.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        cache_dir: Path | str,
        dim: int = 64,
        width: int = 64,
        edges: int = 128,
        dropout: float = 0.1,
        refresh: int = 10,
        table_mb: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, text_encoder, cache_dir, dim, width, edges, dropout, refresh, table_mb, seed)
        self.compose = Composition()
        self.turn = nn.Linear(width, width)

    def mix(
        self, nodes: Tensor, centres: Tensor, relations: Tensor, edges: Tensor, relation: Tensor
    ) -> Tensor:
        """`[n, width]`: the composed neighbours' mean, turned."""
        told = F.embedding(relation, relations)
        return F.gelu(self.turn(self.compose(nodes, centres, edges, told)))
