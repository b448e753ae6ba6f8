"""Eq. 8 learned: tau · cos(SBERT(Verbalize(p)), SBERT(Q ‖ S_Q) + U (q - SBERT(Q))) + g(p, q).

At the start tau = 1, U = 0 and g = 0. g is one transformer layer whose last step reads the whole path. Keys
and values of a step are sums of a relation's, a type's and a neighbourhood's, so they come from tables and a
chain costs little more than its last step.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.edge_scorers.learned import DEEPEST, tau
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.neighbourhoods.none import NoNeighbourhood
from vispath_lit.models.products import trained_dot
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import NeighbourhoodEncoder, TextEncoder
from vispath_lit.types import Intents, Paths, Rows


class LearnedChainScorer(nn.Module):
    """The learned `ChainScorer`. Equals the fixed one until it is trained.

    To the terms above it adds a weight (zero at the start) times the length-normalised log-likelihood of
    the path's steps, where the search counts it.

    Args:
        width: of the transformer layer.
        heads: of its attention; divides `width`.
        dropout: before its last layer.
        neighbourhood: gives g(e) of the path's entities, without a gradient; held but not registered.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        width: int = 128,
        heads: int = 4,
        dropout: float = 0.1,
        neighbourhood: NeighbourhoodEncoder | None = None,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ConfigError(f"chain_scorer.width is {width}; it must be a multiple of its heads, {heads}")
        dim = text_encoder.dim
        self._frozen = (neighbourhood or NoNeighbourhood(),)
        self.heads = heads
        self.features = GraphFeatures(graph, text_encoder)
        self.steps = StepEmbedding(self.features, width)
        near = self.neighbourhood.dim
        self.near = nn.Linear(near, width, bias=False) if near else None
        self.shift = Correction(dim, dim, bias=False)
        self.asked = nn.Linear(3 * dim, width)
        self.hop = nn.Embedding(DEEPEST, width)
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.merge = nn.Sequential(
            nn.LayerNorm(4 * width), nn.Linear(4 * width, width), nn.GELU(), nn.Dropout(dropout)
        )
        self.out = Correction(width, 1)
        self.log_tau = nn.Parameter(torch.zeros(()))
        self.likelihood = nn.Parameter(torch.zeros(()))
        nn.init.normal_(self.hop.weight, std=0.1)

    @property
    def neighbourhood(self) -> NeighbourhoodEncoder:
        return self._frozen[0]

    def forward(self, chains: Paths, texts: Rows, objective: Tensor, intents: Intents) -> Tensor:
        """Logits `[C]`."""
        device = intents.vectors.device
        parent, first = (x.to(device) for x in parents(chains))
        state = chains.state.to(device)[first]
        objective, question = objective[state], intents.question[state]
        moved = intents.vectors.index_select(0, first) - question
        aim = F.normalize(objective + self.shift(moved), dim=1) * tau(self.log_tau)
        asked = self._ask(objective, question, moved).index_select(0, parent)
        logits = trained_dot(texts, parent, aim) + self._net(chains, asked)
        if chains.log_likelihood is not None:
            mean = chains.log_likelihood.to(device) / max(chains.length, 1)
            logits = logits + 10 * self.likelihood * mean  # as quick as tau
        return logits

    def _ask(self, objective: Tensor, question: Tensor, moved: Tensor) -> Tensor:
        """`[n, width]`: question, sketch and intent as one vector."""
        scale = question.shape[1] ** 0.5
        asked: Tensor = self.asked(torch.cat([objective * scale, question * scale, moved], dim=1))
        return asked

    def _net(self, chains: Paths, asked: Tensor) -> Tensor:
        """`[C]`: what the last step makes of the whole path."""
        device = asked.device
        relation, entity = chains.relations.to(device), self.features.type_of[chains.entities.to(device)]
        relations, types = self.steps.relation_table(), self.steps.type_table()
        hops = self.hop.weight[torch.arange(chains.length + 1, device=device).clamp(max=DEEPEST - 1)]
        last = F.embedding(relation[:, -1], relations) + F.embedding(entity[:, -1], types) + hops[-1]
        # The projections are linear: a step's key is the sum of its relation's, its type's and its place's.
        weight = self.key_value.weight
        key_value = F.embedding(entity, types @ weight.T) + hops @ weight.T + self.key_value.bias
        walked = F.embedding(relation, relations @ weight.T)
        key_value = key_value + F.pad(walked, (0, 0, 1, 0))
        if self.near is not None:
            distinct, place = torch.unique(chains.entities, return_inverse=True)
            near, place = self.near(self.neighbourhood.rows(distinct).dense().float()), place.to(device)
            last = last + F.embedding(place[:, -1], near)
            key_value = key_value + F.embedding(place, near @ weight.T)
        mixed = self._attend(self.query(last + asked), key_value)
        merged: Tensor = self.out(self.merge(torch.cat([mixed, last, asked, last * asked], dim=1)))
        return merged[:, 0]

    def _attend(self, query: Tensor, key_value: Tensor) -> Tensor:
        """One query `[C, width]` a chain over its steps `[C, T, 2 * width]`."""
        count, steps, _ = key_value.shape
        key, value = key_value.view(count, steps, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query.view(count, self.heads, 1, -1), key, value)
        return mixed.reshape(count, -1)


def parents(chains: Paths) -> tuple[Tensor, Tensor]:
    """`[C]` the run of chains of one parent path that each is in, and `[runs]` the first chain of each."""
    own = torch.cat([chains.state[:, None], chains.entities[:, :-1], chains.relations[:, :-1]], dim=1)
    changed = torch.ones(len(chains), dtype=torch.bool, device=own.device)
    changed[1:] = (own[1:] != own[:-1]).any(dim=1)
    return torch.cumsum(changed, 0) - 1, torch.nonzero(changed)[:, 0]
