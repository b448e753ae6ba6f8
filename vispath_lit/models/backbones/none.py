"""No backbone: the intent reads the question's words alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from vispath_lit.types import Query


class NoBackbone:
    """A `Backbone` that adds nothing: no hidden states, of no width."""

    dim = 0

    def __call__(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        """`[S, 0, 0]` and `[S, 0]`."""
        return torch.zeros(len(queries), 0, 0), torch.zeros(len(queries), 0, dtype=torch.bool)
