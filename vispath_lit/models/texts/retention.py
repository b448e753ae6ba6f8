"""How much of the exact ranking a composed shortlist keeps: what two-stage texts lose against exact ones."""

from __future__ import annotations

import torch
from torch import Tensor

from vispath_lit.models.similarity import grouped_dot
from vispath_lit.protocols import TextStage
from vispath_lit.types import Frontier, Paths


def retention(shortlist: Tensor, exact: Tensor, group: Tensor, width: int, keep: int) -> Tensor:
    """`[n]` share of the exact top `width` that is in the shortlist's top `keep * width`, group by group.

    Only groups with more than `width` items count. Ties are ranked by position.

    Args:
        shortlist, exact: `[m]` scores by both.
        group: `[m]` long, non-decreasing.
    """
    _, counts = torch.unique_consecutive(group, return_counts=True)
    shares = []
    low = 0
    for count in counts.tolist():
        if count > width:
            best = exact[low : low + count].argsort(descending=True, stable=True)[:width]
            kept = shortlist[low : low + count].argsort(descending=True, stable=True)[: keep * width]
            shares.append(torch.isin(best, kept).float().mean())
        low += count
    return torch.stack(shares) if shares else torch.zeros(0)


def edge_retention(
    first: TextStage, last: TextStage, frontier: Frontier, intents: Tensor, width: int, keep: int
) -> Tensor:
    """`[n]` retention of each partial path with more than `width` edges, by Eq. 5.

    Args:
        first, last: the stages that make the shortlist and that decide.
        intents: `[P, d]`.
    """
    scores = [
        grouped_dot(stage.edge_vectors(frontier.relation, frontier.tail), frontier.edge_path, intents)
        for stage in (first, last)
    ]
    return retention(scores[0], scores[1], frontier.edge_path, width, keep)


def chain_retention(
    first: TextStage, last: TextStage, chains: Paths, objective: Tensor, width: int, keep: int
) -> Tensor:
    """`[n]` retention of each question with more than `width` chains, by Eq. 8.

    Args:
        first, last: the stages that make the shortlist and that decide.
        objective: `[S, d]`.
    """
    scores = [grouped_dot(stage.chain_vectors(chains), chains.state, objective) for stage in (first, last)]
    return retention(scores[0], scores[1], chains.state, width, keep)
