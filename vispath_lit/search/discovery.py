"""Intent-guided path discovery: the frontier, its best edges and the extended paths (Eq. 4-7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import EdgeScorer, TextStage
from vispath_lit.search.budget import affordable, distinct_texts
from vispath_lit.search.ranking import staged_top
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Frontier, Intents, Paths

EDGES_AT_ONCE = 1 << 19  # of several questions; composed texts of so many take 800 MB


@dataclass(frozen=True, slots=True, eq=False)
class Discovery:
    """P_cand of many questions.

    Attributes:
        paths: C extended paths by their partial path, then best edge first; `scores` are the edge logits.
        parent: `[C]` long, the partial path that each one extends.
        edges: `[P]` long, how many edges left each partial path before Eq. 5's cut.
        texts: `[S]` long, distinct edge texts that the last stage embedded; 0 where nothing bounds them.
    """

    paths: Paths
    parent: Tensor
    edges: Tensor
    texts: Tensor


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
    graph: KnowledgeGraph,
    paths: Paths,
    intents: Intents,
    stages: Sequence[TextStage],
    scorer: EdgeScorer,
    settings: SearchSettings,
    spent: Tensor,
) -> Discovery:
    """Eq. 5-7 for many questions at once.

    The top M1 are taken for each partial path: two paths that end at one entity may look for different
    edges. Ties are ranked by the frontier's order.

    Args:
        spent: `[S]` long, the `texts` of earlier hops.
    """
    found = [
        _best_edges(frontier, low, intents, stages, scorer, settings, spent)
        for low, frontier in frontiers(graph, paths, settings)
    ]
    return Discovery(
        Paths(
            torch.cat([one.paths.entities for one in found]),
            torch.cat([one.paths.relations for one in found]),
            torch.cat([one.paths.state for one in found]),
            torch.cat([one.paths.scores for one in found]),
            torch.cat([one.paths.log_likelihood for one in found if one.paths.log_likelihood is not None]),
        ),
        torch.cat([one.parent for one in found]),
        torch.cat([one.edges for one in found]),
        torch.stack([one.texts for one in found]).sum(0),
    )


def frontiers(
    graph: KnowledgeGraph, paths: Paths, settings: SearchSettings, limit: int = EDGES_AT_ONCE
) -> Iterator[tuple[int, Frontier]]:
    """The frontier in runs of whole questions, so that the hubs of a large graph do not meet in memory.

    Yields:
        The first partial path of a run, and the run's frontier: at most `limit` edges, or one question's.
    """
    ends = paths.ends.numpy()
    sizes = graph.out_indptr[ends + 1] - graph.out_indptr[ends]
    if settings.inverse:
        sizes = sizes + graph.in_indptr[ends + 1] - graph.in_indptr[ends]
    first = np.flatnonzero(np.diff(paths.state.numpy(), prepend=-1))
    low, total = 0, 0
    for begin, size in zip(first.tolist(), np.add.reduceat(sizes, first).tolist(), strict=True):
        if begin > low and total + size > limit:
            yield low, _expand(graph, paths, low, begin, settings)
            low, total = begin, 0
        total += size
    yield low, _expand(graph, paths, low, len(paths), settings)


def _expand(graph: KnowledgeGraph, paths: Paths, low: int, high: int, settings: SearchSettings) -> Frontier:
    return expand(
        graph,
        paths.select(torch.arange(low, high)),
        inverse=settings.inverse,
        hub_cap=settings.hub_cap,
        backtrack=settings.backtrack,
    )


def _best_edges(
    frontier: Frontier,
    low: int,
    intents: Intents,
    stages: Sequence[TextStage],
    scorer: EdgeScorer,
    settings: SearchSettings,
    spent: Tensor,
) -> Discovery:
    """Eq. 5-6 on one frontier, whose first path is row `low` of the intents."""
    paths = frontier.paths
    edges = torch.bincount(frontier.edge_path, minlength=len(paths))
    if not len(frontier):
        none = frontier.edge_path
        longer = extend(paths, frontier, torch.zeros(0), torch.zeros(0))
        return Discovery(longer, none, edges, torch.zeros_like(spent))
    mine = intents.of(slice(low, low + len(paths)))

    def score(stage: TextStage, rows: Tensor) -> Tensor:
        some = frontier.select(rows)
        return scorer(some, stage.edge_vectors(some.relation, some.tail), mine)

    def afford(stage: TextStage, rows: Tensor) -> Tensor:
        return affordable(stage, frontier.select(rows), spent, settings)

    best, scored, logits = staged_top(
        stages,
        score,
        frontier.edge_path,
        settings.m1,
        settings.m1,
        frontier.relation,
        settings.relation_cap,
        afford,
    )
    state = paths.state - paths.state[0]
    likelihood = log_softmax_in(logits, state[frontier.edge_path[scored]], int(state[-1]) + 1)
    kept = frontier.select(scored[best])
    longer = extend(paths, kept, logits[best], likelihood[best])
    texts = distinct_texts(stages, frontier.select(scored), len(spent))
    return Discovery(longer, kept.edge_path + low, edges, texts)
