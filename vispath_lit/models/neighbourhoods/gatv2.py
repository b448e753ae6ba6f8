"""GATv2 over the ego-graph: heads look for edges by relation, neighbour and centre."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch_geometric.nn import GATv2Conv

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.protocols import TextEncoder


class GATv2Neighbourhood(EgoGraphEncoder):
    """One layer of Brody et al. 2022, with relations as edge features; see `EgoGraphEncoder`.

    Args:
        heads: of the attention; divides `width`.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        cache_dir: Path | str,
        dim: int = 64,
        width: int = 128,
        heads: int = 16,
        edges: int = 128,
        dropout: float = 0.1,
        refresh: int = 10,
        table_mb: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__(graph, text_encoder, cache_dir, dim, width, edges, dropout, refresh, table_mb, seed)
        if width % heads:
            raise ConfigError(f"neighbourhood.width is {width}; it must be a multiple of its heads, {heads}")
        self.layer = GATv2Conv(width, width // heads, heads, edge_dim=width, add_self_loops=False)

    def mix(
        self, nodes: Tensor, centres: Tensor, relations: Tensor, edges: Tensor, relation: Tensor
    ) -> Tensor:
        """`[n, width]`: neighbours weighed by attention, one weight a head."""
        told = F.embedding(relation, relations)
        heard: Tensor = self.layer((nodes, centres), edges, told)
        return F.gelu(heard)
