"""No neighbourhoods: an entity is known by its texts and its type alone."""

from __future__ import annotations

import torch
from torch import Tensor

from vispath_lit.types import Rows


class NoNeighbourhood:
    """The `NeighbourhoodEncoder` of width 0; nothing is sampled, encoded or trained."""

    dim = 0

    def rows(self, entities: Tensor) -> Rows:
        """No numbers for each of `[n]` entities."""
        return Rows(torch.zeros(1, 0), torch.zeros_like(entities, device="cpu"))

    def encode(self, entities: Tensor) -> Tensor:
        """`[n, 0]`."""
        return torch.zeros(len(entities), 0)

    def refresh(self, step: int) -> None:
        """Nothing grows old."""
