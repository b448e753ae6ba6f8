"""Intent-guided path discovery: the frontier, its best edges and the extended paths (Eq. 4-7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from vispath_lit.protocols import EdgeScorer, TextStage
from vispath_lit.search.ranking import staged_top
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Frontier, Intents, Paths


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """P_cand of many questions.

    Attributes:
        paths: C extended paths by their partial path, then best edge first; `scores` are the edge logits.
        parent: `[C]` long, the partial path that each one extends.
    """

    paths: Paths
    parent: Tensor


def log_softmax_in(logits: Tensor, group: Tensor, groups: int) -> Tensor:
    """`[n]` log-softmax of each logit among those of its group."""
    top = torch.full((groups,), -torch.inf).scatter_reduce(0, group, logits, "amax")
    shifted = logits - top[group]
    total = torch.zeros(groups).index_add(0, group, shifted.exp())
    return shifted - total[group].log()


def extend(paths: Paths, frontier: Frontier, logits: Tensor, log_likelihood: Tensor) -> Paths:
    """Eq. 6: every kept path by every kept edge of its endpoint; at most M1 |P| of them (Eq. 7).

    Args:
        paths: the P partial paths.
        frontier: the C kept edges.
        logits: `[C]` edge logits, the new paths' scores.
        log_likelihood: `[C]` of the new steps.
    """
    longer = paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    before = 0.0 if longer.log_likelihood is None else longer.log_likelihood
    return replace(longer, scores=logits, log_likelihood=before + log_likelihood)


def discover(
    frontier: Frontier,
    intents: Intents,
    stages: Sequence[TextStage],
    scorer: EdgeScorer,
    settings: SearchSettings,
) -> Discovery:
    """Eq. 5-7 on the frontier of many questions at once.

    The top M1 are taken for each partial path: two paths that end at one entity may look for different
    edges. Ties are ranked by the frontier's order.
    """
    if not len(frontier):
        none = frontier.paths.select(torch.zeros(0, dtype=torch.long))
        return Discovery(none.extend(none.state, none.state, none.state), none.state)

    def score(stage: TextStage, rows: Tensor) -> Tensor:
        edges = frontier.select(rows)
        return scorer(edges, stage.edge_vectors(edges.relation, edges.tail), intents)

    best, scored, logits = staged_top(
        stages,
        score,
        frontier.edge_path,
        settings.m1,
        settings.m1,
        frontier.relation,
        settings.relation_cap,
    )
    state = frontier.paths.state
    likelihood = log_softmax_in(logits, state[frontier.edge_path[scored]], int(state[-1]) + 1)
    kept = frontier.select(scored[best])
    return Discovery(extend(frontier.paths, kept, logits[best], likelihood[best]), kept.edge_path)
