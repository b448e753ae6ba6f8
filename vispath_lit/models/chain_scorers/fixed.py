"""Eq. 8 as the paper has it: the cosine of a verbalised chain and the question's whole objective."""

from __future__ import annotations

from torch import Tensor

from vispath_lit.models.similarity import grouped_dot
from vispath_lit.types import Intents, Paths, Rows


def chain_scores(state: Tensor, texts: Rows, objective: Tensor) -> Tensor:
    """Eq. 8: `cos(SBERT(Verbalize(p)), SBERT(Q ‖ S_Q ‖ q))`, `[C]`.

    Args:
        state: `[C]` long, the question of each chain.
        texts: C unit vectors of Verbalize(p).
        objective: `[S, d]` unit vectors, one a question.
    """
    return grouped_dot(texts, state, objective)


class FixedChainScorer:
    """The fixed `ChainScorer`: nothing is trained."""

    def __call__(self, chains: Paths, texts: Rows, objective: Tensor, intents: Intents) -> Tensor:
        return chain_scores(chains.state, texts, objective)
