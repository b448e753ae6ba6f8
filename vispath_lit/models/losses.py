"""Listwise losses over flat segments: one list a partial path (edges) or a state (chains)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


def segment_logsumexp(values: Tensor, segment: Tensor, segments: int) -> Tensor:
    """`log sum exp` of each segment.

    Args:
        values: `[n]`; `-inf` counts as absent.
        segment: `[n]` long in `[0, segments)`, in any order.
        segments: how many; an empty one gives `-inf`.

    Returns:
        `[segments]`.
    """
    low = values.new_full((segments,), float("-inf"))
    top = low.scatter_reduce(0, segment, values.detach(), "amax", include_self=True)
    shift = torch.where(top.isfinite(), top, torch.zeros_like(top))
    total = values.new_zeros(segments).index_add(0, segment, (values - shift[segment]).exp())
    positive = total > 0
    # log(0) is kept out of the graph: its gradient would be nan, not zero.
    return torch.where(positive, torch.where(positive, total, torch.ones_like(total)).log() + shift, low)


def listwise_cross_entropy(logits: Tensor, weights: Tensor, segment: Tensor, segments: int) -> Tensor:
    """Cross-entropy of lists with several positives: mean of `-log sum_i w_i softmax(logits)_i`.

    One positive of a list suffices for a small loss, so that an accepted edge among many, or a spurious
    weak path, does not have to score high; a weak positive counts by its precision `w_i`.

    Args:
        logits: `[n]`.
        weights: `[n]` in [0, 1]; 0 is a negative.
        segment: `[n]` long, the list of each item.
        segments: number of lists; lists without a positive do not count.

    Returns:
        Scalar; 0 where no list has a positive.
    """
    positive = weights > 0
    whole = segment_logsumexp(logits, segment, segments)
    marked = logits[positive] + weights[positive].log()
    accepted = segment_logsumexp(marked, segment[positive], segments)
    counted = accepted.isfinite()
    if not bool(counted.any()):
        return logits.sum() * 0.0
    return (whole[counted] - accepted[counted]).mean()


def listwise_hits(logits: Tensor, weights: Tensor, segment: Tensor, segments: int) -> tuple[Tensor, Tensor]:
    """Whether the best item of each list with a positive is a positive; the earlier item wins a tie.

    Args:
        logits, weights, segment, segments: as of `listwise_cross_entropy`.

    Returns:
        (hits, lists): both scalar counts.
    """
    low = logits.new_full((segments,), float("-inf"))
    top = low.scatter_reduce(0, segment, logits, "amax", include_self=True)
    place = torch.arange(len(logits), device=logits.device)
    place = torch.where(logits == top[segment], place, torch.full_like(place, len(logits)))
    first = place.new_full((segments,), len(logits)).scatter_reduce(0, segment, place, "amin")
    listed = torch.zeros(segments, dtype=torch.bool, device=logits.device)
    listed[segment[weights > 0]] = True
    return (weights[first[listed]] > 0).sum(), listed.sum()


def depth_cross_entropy(logits: Tensor, hops: Tensor) -> Tensor:
    """Cross-entropy of the predicted depth.

    Args:
        logits: `[S, D_max]`; column i is i + 1 hops.
        hops: `[S]` long, from 1; deeper than D_max counts as D_max, as the search stops there.
    """
    return F.cross_entropy(logits, hops.clamp(max=logits.shape[1]) - 1)
