"""Corrections that are zero until they are trained, so that training starts at the fixed scorers."""

from __future__ import annotations

from torch import nn


class Correction(nn.Linear):
    """The last layer of a correction: zero at the start, while the layers before it are not.

    It draws weights before it forgets them: the layers after it begin alike, whatever this one begins with.
    """

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)


def start_at_random(parts: nn.Module) -> int:
    """Gives every `Correction` the weights of any other linear layer: the ablation of the residual start.

    Returns:
        how many there were.
    """
    corrections = [module for module in parts.modules() if isinstance(module, Correction)]
    for correction in corrections:
        nn.Linear.reset_parameters(correction)
    return len(corrections)
