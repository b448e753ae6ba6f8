"""Best first within groups: how the search and training rank, and how they break ties."""

from __future__ import annotations

import torch
from torch import Tensor


def best_first(scores: Tensor, group: Tensor) -> Tensor:
    """`[n]` rows sorted by group, then by score, highest first; ties keep the order of their rows.

    Args:
        scores: `[n]` finite.
        group: `[n]` long, below 2^31, on the CPU.

    Raises:
        ValueError: a score that is not a finite number.
    """
    scores = scores.detach().to("cpu", torch.float32)
    if not bool(torch.isfinite(scores).all()):
        raise ValueError("a scorer gave a logit that is not a finite number; check its parameters for NaN")
    # One stable sort of one integer: the group above, the float's bits (made monotone, descending) below.
    bits = scores.view(torch.int32).to(torch.int64)
    ascending = torch.where(bits < 0, -(bits + 2**31), bits)
    return torch.sort((group << 32) - ascending, stable=True).indices


def rank_in_run(sorted_group: Tensor) -> Tensor:
    """`[n]` position of each row within its run of equal neighbours: 0, 1, 2, ..."""
    _, counts = torch.unique_consecutive(sorted_group, return_counts=True)
    first = torch.cumsum(counts, 0) - counts
    return torch.arange(len(sorted_group)) - torch.repeat_interleave(first, counts)
