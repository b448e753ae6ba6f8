"""The losses of what pictures tell by themselves of the steps that words leave open."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vispath_lit.data.states import HopStates
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.picture import Seen
from vispath_lit.models.losses import listwise_cross_entropy, segment_logsumexp
from vispath_lit.protocols import NeighbourhoodEncoder
from vispath_lit.types import Intents

FACTS = 0.02  # of the loss of a tail's facts beside that of its list


def picture_loss(
    states: HopStates, intents: Intents, seen: Seen, logits: Tensor, scorer: LearnedEdgeScorer
) -> Tensor:
    """What the words leave open of a step, the picture should decide by what it tells alone: a scalar.

    What the words say is a constant here: where they suffice there is nothing to be learned, so that a few
    hundred pictures that matter are not drowned by thousands that do not.

    Args:
        intents: of the P paths, with what they trust of the pictures.
        seen: what the pictures of all questions of the batch tell.
        logits: `[E]` of the edges, words and what they trust together.
    """
    assert intents.relations is not None  # there are some wherever pictures are looked at
    frontier, device = states.frontier, logits.device
    question = states.question.to(device)[frontier.paths.state.to(device)]
    path = frontier.edge_path.to(device)
    shown = states.accepted.to(device) & seen.there[question]
    weight = states.weight.to(device) * shown[path]
    # Facts have a loss of their own; what other neighbourhoods are like takes part in the list.
    tails = None if seen.odds.shape[1] else seen.tails[question]
    with torch.no_grad():  # without facts either: learned by heart, they would explain the step away
        words = logits - scorer.told(frontier, intents.relations, intents.near)
    told = scorer.told(frontier, seen.relations[question], tails)
    loss = listwise_cross_entropy(words + told, weight, path, len(frontier.paths))
    return loss + FACTS * tail_facts(states, seen, logits.detach(), weight, scorer.neighbourhood)


def tail_facts(
    states: HopStates, seen: Seen, logits: Tensor, weight: Tensor, facts: NeighbourhoodEncoder
) -> Tensor:
    """Binary cross-entropy of the facts of the step's tail, summed, as far as the logits leave it open.

    A list of a few neighbours says little of what is in a picture; all the facts of the right one do.

    Args:
        weight: `[E]` of the edges that count as right, 0 of the others.
    """
    gold = states.gold_edge.to(logits.device)
    rows = torch.nonzero((gold >= 0) & (weight[gold.clamp_min(0)] > 0))[:, 0]
    if not seen.odds.shape[1] or not len(rows):
        return seen.odds.sum() * 0.0  # all weights take part in every step, as ddp wants it
    frontier, edge = states.frontier, gold[rows]
    path = frontier.edge_path.to(logits.device)
    whole = segment_logsumexp(logits, path, len(frontier.paths))
    right = segment_logsumexp(logits.where(weight > 0, -torch.inf), path, len(frontier.paths))
    left_open = 1.0 - (right - whole)[path[edge]].exp()
    true = facts.encode(frontier.tail[states.gold_edge[rows.cpu()]])
    odds = seen.odds[states.question.to(logits.device)[rows]]
    loss = F.binary_cross_entropy_with_logits(odds, true.to(odds), reduction="none").sum(dim=1)
    return (left_open * loss).mean()
