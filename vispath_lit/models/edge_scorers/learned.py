"""Eq. 5 learned: tau · cos(SBERT(r ‖ e_t), q) + f(r, e_t, g(e_t), q, distance).

At the start tau = 1 and f = 0. f is a sum of products between a projection of the intent and what an edge
is made of, so that a hub costs as much as the cosine: text, relation, tail type and neighbourhood are each
one product with a vector a path.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.kg.distances import DISTANCES, from_start
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.neighbourhoods.none import NoNeighbourhood
from vispath_lit.models.products import trained_dot
from vispath_lit.models.ranking import best_first, rank_in_run
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import NeighbourhoodEncoder, TextEncoder
from vispath_lit.types import Frontier, Intents, Rows

PLACES = 3  # a new entity, the start again, another entity of the path again
DEEPEST = 16


class LearnedEdgeScorer(nn.Module):
    """The learned `EdgeScorer`. Equals the fixed one until it is trained.

    Args:
        width: of the intent's projection and of relation and type vectors.
        dropout: inside the projection.
        neighbourhood: gives g(e_t). It is held but not registered: other scorers hold it too.
        fresh: in training the neighbourhoods of the positives' tails, and of so many hardest edges' a state,
            are encoded with a gradient.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        width: int = 256,
        dropout: float = 0.1,
        neighbourhood: NeighbourhoodEncoder | None = None,
        fresh: int = 64,
    ) -> None:
        super().__init__()
        if fresh < 0:
            raise ConfigError(f"edge_scorer.fresh is {fresh}; it must not be negative")
        dim = text_encoder.dim
        self._frozen = (graph, neighbourhood or NoNeighbourhood())
        self.width = width
        self.fresh = fresh
        self.features = GraphFeatures(graph, text_encoder)
        self.steps = StepEmbedding(self.features, width)
        self.sizes = [dim, width, width, PLACES, DISTANCES, self.neighbourhood.dim]
        self.read = nn.Sequential(nn.Linear(2 * dim, width), nn.GELU(), nn.Dropout(dropout))
        self.hop = nn.Embedding(DEEPEST, width)
        self.out = Correction(width, sum(self.sizes))
        self.log_tau = nn.Parameter(torch.zeros(()))
        nn.init.normal_(self.hop.weight, std=0.1)

    @property
    def neighbourhood(self) -> NeighbourhoodEncoder:
        return self._frozen[1]

    def forward(
        self, frontier: Frontier, texts: Rows, intents: Intents, accepted: Tensor | None = None
    ) -> Tensor:
        """Logits `[E]`.

        Args:
            accepted: `[E]` bool, the positives, in training.
        """
        device = intents.vectors.device
        path, relation, tail = (x.to(device) for x in (frontier.edge_path, frontier.relation, frontier.tail))
        wanted = self._wanted(intents, frontier.paths.state.to(device), frontier.paths.length)
        parts = torch.split_with_sizes(wanted, self.sizes, dim=1)
        text, of_relation, of_type, of_place, of_distance, near = parts
        cosine = nn.functional.normalize(intents.vectors, dim=1) * tau(self.log_tau)
        relations = of_relation @ self.steps.relation_table().T / self.width**0.5
        if intents.relations is not None:
            relations = relations + intents.relations
        types = of_type @ self.steps.type_table().T / self.width**0.5
        logits = trained_dot(texts, path, cosine + text)
        logits = logits + pick(relations, path, relation) + pick(types, path, self.features.type_of[tail])
        logits = logits + pick(of_place, path, places(frontier).to(device))
        if frontier.paths.length:  # The first step leads to a neighbour of the start anyway.
            logits = logits + pick(of_distance, path, from_start(self._frozen[0], frontier).to(device))
        if self.neighbourhood.dim:
            logits = logits + self._nearby(frontier, near, intents.near, logits, accepted)
        return logits

    def told(self, frontier: Frontier, relations: Tensor, near: Tensor | None) -> Tensor:
        """Logits `[E]` of what pictures tell: `[P, 2R]` of relations and, if anything, `[P, k]` of tails."""
        path, relation = (x.to(relations.device) for x in (frontier.edge_path, frontier.relation))
        logits = pick(relations, path, relation)
        if near is not None and near.shape[1]:
            logits = logits + trained_dot(self.neighbourhood.rows(frontier.tail), path, near)
        return logits

    def _nearby(
        self,
        frontier: Frontier,
        near: Tensor,
        told: Tensor | None,
        others: Tensor,
        accepted: Tensor | None,
    ) -> Tensor:
        """`[E]`: the term of the neighbourhoods.

        Args:
            near: `[P, k]`, what each path is looking for.
            told: `[P, k]`, what its picture adds to that.
            others: `[E]`, the other terms.
            accepted: as above.
        """
        near = near / self.neighbourhood.dim**0.5
        near = near if told is None else near + told
        path = frontier.edge_path.to(near.device)
        term = trained_dot(self.neighbourhood.rows(frontier.tail), path, near)
        if not self.training or accepted is None:
            return term
        state = frontier.paths.state[frontier.edge_path]
        hardest = best_first(others + term, state)
        chosen = accepted.to("cpu", copy=True)
        chosen[hardest[rank_in_run(state[hardest]) < self.fresh]] = True
        rows = torch.nonzero(chosen)[:, 0]
        distinct, place = torch.unique(frontier.tail[rows], return_inverse=True)
        rows, place = rows.to(near.device), place.to(near.device)
        encoded = self.neighbourhood.encode(distinct).index_select(0, place)
        own = (encoded * near.index_select(0, path[rows])).sum(dim=1)
        return term.index_copy(0, rows, own.to(term.dtype))

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
