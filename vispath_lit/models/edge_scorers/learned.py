"""Eq. 5 learned: tau · cos(SBERT(r ‖ e_t), q) + f(r, e_t, g(e_t), q, distance).

At the start tau = 1 and f = 0. f is a sum of products between a projection of the intent and what an edge
is made of, so that a hub costs as much as the cosine: text, relation and tail type are each one product with
a vector a path.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.products import trained_dot
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Frontier, Intents, Rows

PLACES = 3  # a new entity, the start again, another entity of the path again
DEEPEST = 16


class LearnedEdgeScorer(nn.Module):
    """The learned `EdgeScorer`. Equals the fixed one until it is trained.

    Args:
        width: of the intent's projection and of relation and type vectors.
        dropout: inside the projection.
        neighbourhood: `[N, k]` frozen vectors of the entities' neighbourhoods, g(e_t); None without a GNN.
    """

    neighbourhood: Tensor | None

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        width: int = 256,
        dropout: float = 0.1,
        neighbourhood: Tensor | None = None,
    ) -> None:
        super().__init__()
        dim = text_encoder.dim
        self.width = width
        self.features = GraphFeatures(graph, text_encoder)
        self.steps = StepEmbedding(self.features, width)
        self.register_buffer("neighbourhood", neighbourhood, persistent=False)
        near = 0 if neighbourhood is None else neighbourhood.shape[1]
        self.sizes = [dim, width, width, PLACES, near]
        self.read = nn.Sequential(nn.Linear(2 * dim, width), nn.GELU(), nn.Dropout(dropout))
        self.hop = nn.Embedding(DEEPEST, width)
        self.out = nn.Linear(width, sum(self.sizes))
        self.log_tau = nn.Parameter(torch.zeros(()))
        nn.init.normal_(self.hop.weight, std=0.1)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, frontier: Frontier, texts: Rows, intents: Intents) -> Tensor:
        """Logits `[E]`."""
        device = intents.vectors.device
        path, relation, tail = (x.to(device) for x in (frontier.edge_path, frontier.relation, frontier.tail))
        wanted = self._wanted(intents, frontier.paths.state.to(device), frontier.paths.length)
        text, of_relation, of_type, of_place, near = torch.split_with_sizes(wanted, self.sizes, dim=1)
        cosine = nn.functional.normalize(intents.vectors, dim=1) * tau(self.log_tau)
        relations = of_relation @ self.steps.relation_table().T / self.width**0.5
        types = of_type @ self.steps.type_table().T / self.width**0.5
        logits = trained_dot(texts, path, cosine + text)
        logits = logits + pick(relations, path, relation) + pick(types, path, self.features.type_of[tail])
        logits = logits + pick(of_place, path, places(frontier).to(device))
        if self.neighbourhood is not None:
            logits = logits + trained_dot(Rows(self.neighbourhood, tail), path, near)
        return logits

    def _wanted(self, intents: Intents, state: Tensor, length: int) -> Tensor:
        """`[P, sum(sizes)]`: what each path's intent is multiplied with."""
        question = intents.question[state]
        scale = question.shape[1] ** 0.5
        asked = torch.cat([question * scale, intents.vectors - question], dim=1)
        hop = self.hop.weight[min(length, DEEPEST - 1)]
        wanted: Tensor = self.out(self.read(asked) + hop)
        return wanted


def tau(log_tau: Tensor) -> Tensor:
    """The cosine's factor: 1 where the parameter is 0, and ten times as quick as the others.

    It has a long way to go, from a cosine's range to a logit's.
    """
    return (10.0 * log_tau).exp()


def pick(table: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """`table[row, column]`, with a gradient that costs no sort."""
    return table.flatten().index_select(0, row * table.shape[1] + column)


def places(frontier: Frontier) -> Tensor:
    """`[E]`: 0 where an edge leads to a new entity, 1 to the start, 2 to another entity of the path."""
    visited = frontier.paths.entities[frontier.edge_path] == frontier.tail[:, None]
    again = visited.any(dim=1).long() * 2
    return torch.where(visited[:, 0], torch.ones_like(again), again)
