"""A graph with a hub, and neighbourhood encoders small enough to be looked into."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from learned_worlds import WordEncoder, ring_triples
from torch import nn

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods.compgcn import CompGCNNeighbourhood
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.models.neighbourhoods.gatv2 import GATv2Neighbourhood

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
LONE, HUB, COUNT = 59, 40, 60
KINDS = (GATv2Neighbourhood, CompGCNNeighbourhood)


def crowded(make_graph: MakeGraph) -> KnowledgeGraph:
    """The ring, a hub that everything on it leads to, and an entity without edges."""
    return make_graph(COUNT, 7, [*ring_triples(), *((h, 6, HUB) for h in range(40)), (50, 6, 51)])


def make(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, folder: Path, **values: Any
) -> EgoGraphEncoder:
    torch.manual_seed(0)
    given: dict[str, Any] = {
        "dim": 8,
        "width": 16,
        "edges": 10,
        **({"heads": 4} if kind is GATv2Neighbourhood else {}),
    }
    return kind(graph, words, folder, **{**given, **values}).eval()


def move(module: nn.Module, seed: int = 1) -> None:
    """A step of training, as far as the weights can tell."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
