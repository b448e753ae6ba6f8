"""`similarity.grouped_dot` with a gradient to its vectors: the product of the learned scorers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from vispath_lit.models.similarity import BLOCK, grouped_dot
from vispath_lit.types import Rows


class _GroupedDot(Function):
    """No gradient to the texts, which are frozen: their `[n, d]` would be all the memory of a hub."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, index: Tensor, group: Tensor, vectors: Tensor) -> Tensor:
        ctx.save_for_backward(table, index, group)
        ctx.rows = vectors.shape[0]
        return grouped_dot(Rows(table, index), group, vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, None, Tensor]:
        (outer,) = gradients
        table, index, group = ctx.saved_tensors
        groups, counts = torch.unique_consecutive(group, return_counts=True)
        inner = outer.new_zeros((ctx.rows, table.shape[1]))
        low = 0
        for one, count in zip(groups.tolist(), counts.tolist(), strict=True):
            for start in range(low, low + count, BLOCK):
                block = slice(start, min(start + BLOCK, low + count))
                inner[one] += outer[block] @ table[index[block]].to(outer.dtype)
            low += count
        return None, None, None, inner


def trained_dot(texts: Rows, group: Tensor, vectors: Tensor) -> Tensor:
    """`vectors[group[i]] . texts.vectors[texts.index[i]]` for every i, in `[n]`.

    The values are those of `grouped_dot`, so that an untrained scorer breaks ties as the fixed one does.

    Args:
        texts: n items over a frozen table `[U, d]`.
        group: `[n]` long, the row of `vectors` that each item meets; fast where equal values are adjacent.
        vectors: `[G, d]`; gets a gradient.
    """
    device = vectors.device
    table, index = texts.vectors.to(device), texts.index.to(device)
    result: Tensor = _GroupedDot.apply(table, index, group, vectors)  # type: ignore[no-untyped-call]
    return result
