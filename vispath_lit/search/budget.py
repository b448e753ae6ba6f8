"""A bound on the exact texts of a question: what each hop may embed, and how its paths share that."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vispath_lit.models.ranking import rank_in_run
from vispath_lit.protocols import TextStage
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Frontier


def affordable(stage: TextStage, edges: Frontier, spent: Tensor, settings: SearchSettings) -> Tensor:
    """`[n]` bool: which edges of a stage's shortlist are within its question's bound; all without one.

    The M1 best of each path are, whatever the bound.

    Args:
        edges: the shortlist by path, those first that it would keep by itself, at most M1 and no more of a
            relation than the search keeps; then the others, each best first.
        spent: `[S]` long, distinct edge texts of earlier hops.
    """
    if stage.texts is None or stage.keep is None:
        return torch.ones(len(edges), dtype=torch.bool)
    limit = stage.texts - spent - set_aside(stage.keep, edges.paths.length, settings)
    return in_turns(edges.edge_path, edges.paths.state[edges.edge_path], limit, settings.m1)


def set_aside(keep: int, walked: int, settings: SearchSettings) -> int:
    """Texts of a question that are not for the edges of the hop after `walked` ones.

    The question itself; at each hop the intent, the objective and the shortlist of chains; for each path of
    the hops still to come half a full shortlist, as half keeps nearly all of the exact top M1 and M1 edges
    alone do not. Known of these hops is that they are D_max at most, of M3 paths at most; what one does not
    need is there for the next.
    """
    besides = 1 + settings.d_max * (2 + keep * settings.m3)
    paths = settings.m3 * max(settings.d_max - walked - 1, 0)
    return besides + paths * settings.m1 * ((keep + 1) // 2)


def in_turns(path: Tensor, question: Tensor, limit: Tensor, least: int) -> Tensor:
    """`[n]` bool: the first `limit` edges of each question when its paths take turns, best edges first.

    A path with few edges so leaves its turns to the others. The `least` best of each are in any case.

    Args:
        path: `[n]` long, non-decreasing; the edges of a path in the order of their turns.
        question: `[n]` long, of each edge.
        limit: `[S]` long.
    """
    turn = rank_in_run(path)
    order = torch.sort((question << 32) + turn, stable=True).indices
    place = torch.empty_like(order)
    place[order] = rank_in_run(question[order])
    return (place < limit[question]) | (turn < least)


def distinct_texts(stages: Sequence[TextStage], edges: Frontier, questions: int) -> Tensor:
    """`[S]` long: distinct (relation, tail) pairs of each question's edges; 0 where nothing bounds them."""
    if all(stage.texts is None for stage in stages):
        return torch.zeros(questions, dtype=torch.long)
    triples = torch.stack([edges.paths.state[edges.edge_path], edges.relation, edges.tail])
    return torch.bincount(torch.unique(triples, dim=1)[0], minlength=questions)
