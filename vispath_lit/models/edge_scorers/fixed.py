"""Eq. 5 as the paper has it: the cosine of an edge's text and the hop's intent."""

from __future__ import annotations

from torch import Tensor

from vispath_lit.models.similarity import grouped_dot
from vispath_lit.types import Frontier, Intents, Rows


def edge_scores(edge_path: Tensor, texts: Rows, intents: Tensor) -> Tensor:
    """Eq. 5: `cos(SBERT(r ‖ e_t), q)`, `[E]`.

    Args:
        edge_path: `[E]` long, the partial path of each edge.
        texts: E unit vectors of "r ‖ e_t".
        intents: `[P, d]` unit vectors, one a partial path.
    """
    return grouped_dot(texts, edge_path, intents)


class FixedEdgeScorer:
    """The fixed `EdgeScorer`: nothing is trained."""

    def __call__(self, frontier: Frontier, texts: Rows, intents: Intents) -> Tensor:
        return edge_scores(frontier.edge_path, texts, intents.vectors)
