"""Matrix products whose rows do not depend on their company."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

BLOCK = 64


def blockwise(function: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
    """`function` of `[n, k]` rows in blocks of one fixed size, the last one padded with zeros.

    A product of another shape may add in another order. With one shape for all, a text gets the same bits
    alone and among thousands, so that a batch never decides a near-tie.
    """
    rows = max(len(inputs), 1)
    padded = F.pad(inputs, (0, 0, 0, rows - len(inputs) + -rows % BLOCK))
    blocks = [function(padded[low : low + BLOCK]) for low in range(0, len(padded), BLOCK)]
    return torch.cat(blocks)[: len(inputs)]
