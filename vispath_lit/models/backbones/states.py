"""States in batches of about equal length, and their hidden states joined again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vispath_lit.encoders.minilm import MAX_CHARACTERS


def readable(text: str) -> str:
    """A text that every tokenizer can read, of bounded length: unpaired surrogates become question marks."""
    return text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def batches(lengths: Sequence[int], size: int) -> list[list[int]]:
    """All positions in batches of at most `size`, the longest first; ties stay in order."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    return [order[low : low + size] for low in range(0, len(order), size)]


def joined(
    parts: Sequence[tuple[Tensor, Tensor]], rows: Sequence[Sequence[int]], like: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Hidden states `[n, l, d]` and masks `[n, l]` of batches as `[S, L, d]` and `[S, L]`, in order.

    Args:
        parts: one pair a batch.
        rows: the states of each batch.
        like: has the device of the result where there is no batch at all.
        dim: d.
    """
    if not parts:
        return torch.zeros(0, 0, dim, device=like.device), torch.zeros(
            0, 0, dtype=torch.bool, device=like.device
        )
    widest = max(mask.shape[1] for _, mask in parts)
    hidden = [F.pad(states, (0, 0, 0, widest - states.shape[1])) for states, _ in parts]
    masks = [F.pad(mask, (0, widest - mask.shape[1])) for _, mask in parts]
    back = torch.tensor([row for batch in rows for row in batch], device=hidden[0].device).argsort()
    return torch.cat(hidden)[back], torch.cat(masks)[back]
