"""Frozen encoders and providers are used in training as in the search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def frozen() -> Iterator[None]:
    """No gradient, and full precision also where training itself runs in mixed precision."""
    with torch.no_grad(), torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
        yield
