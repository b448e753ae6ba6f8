"""Frozen encoders and providers in training: as in the search, but for words that are hidden on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def frozen() -> Iterator[None]:
    """No gradient, and full precision also where training itself runs in mixed precision."""
    with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        yield


def hide_words(mask: Tensor, share: float) -> Tensor:
    """The mask `[S, L]` of question tokens without a random `share` of them; the first one always stays."""
    if not share:
        return mask
    shown = torch.rand(mask.shape, device=mask.device) >= share
    shown[:, 0] = True
    return mask & shown
