"""What an intent sees of a picture: a few places of memory, read from the cells of frozen image features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.models.attention import Attention
from vispath_lit.models.frozen import frozen
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Query

SHIFT = 1
"""Cells by which pictures are moved in training, at most, either way and in both directions."""


class Seen(NamedTuple):
    """What pictures tell.

    Attributes:
        places: `[S, T, width]` of memory.
        there: `[S]` bool, whether there is a picture.
        relations: `[S, 2R]` logits of the signed relations of a step that the words leave open.
        facts: `[S, k]` the same of what its tail's neighbourhood tells; of facts, what a tail with the
            fact gains.
    """

    places: Tensor
    there: Tensor
    relations: Tensor
    facts: Tensor


class PictureReader(nn.Module):
    """Trained questions to a picture, as in the resampler of Alayrac et al. 2022.

    Each place asks all cells, and what they answer is mixed, so that a place can hold what follows from
    several cells, such as which way an arrow points. An image encoder without cells is one cell.

    A few hundred pictures decide a step of a walk: too few to learn to see from the walk's losses alone. So
    the picture also tells by itself which relation is walked and what its tail is like, with a loss of its
    own (`GuidedWalk`). That adds to the logits of the edges as far as the intent trusts it: which relations
    count, and which relations' facts, the words tell.

    Args:
        width: of a place.
        heads: of the attention.
        tokens: T, places of a picture.
        dropout: inside the mixture.
        facts: `[k]` long, the signed relation of each fact that a neighbourhood tells; empty without any.
        near: k of a neighbourhood that tells something other than facts; 0 without one.
    """

    facts: Tensor

    def __init__(
        self,
        image_encoder: ImageEncoder,
        width: int,
        heads: int,
        tokens: int,
        dropout: float,
        facts: Tensor,
        near: int = 0,
    ) -> None:
        super().__init__()
        cells = getattr(image_encoder, "cells", None)
        self._frozen: tuple[ImageEncoder] = (image_encoder if cells is None else cells,)
        self.side = 1 if cells is None else int(cells.side)
        self.tokens = tokens
        self.project = nn.Linear(self._frozen[0].dim // self.side**2, width)
        self.place = nn.Parameter(torch.randn(self.side**2, width) * 0.1)
        self.norm = nn.LayerNorm(width)
        self.ask = nn.Parameter(torch.randn(tokens, width))
        self.attention = Attention(width, heads)
        self.mix = nn.Sequential(nn.Linear(tokens * width, 2 * width), nn.GELU(), nn.Dropout(dropout))
        self.places = nn.Sequential(nn.Linear(2 * width, tokens * width), nn.Unflatten(1, (tokens, width)))
        self.of_relation = nn.Linear(2 * width, width)
        self.register_buffer("facts", facts, persistent=False)
        if told := len(facts) or near:
            self.of_facts = nn.Linear(2 * width, told)
        if near:
            self.trust_near = Correction(width, 1)
        self.trust = Correction(width, 2 * width)
        self.level = nn.LayerNorm(width)

    def forward(self, queries: Sequence[Query], relations: Tensor) -> Seen:
        """What S pictures tell; where there is none, nothing of it counts.

        Args:
            relations: `[2R, width]`.
        """
        device = self.ask.device
        there = torch.tensor([query.image is not None for query in queries], device=device)
        cells = self.ask.new_zeros(len(queries), self.side**2, self.project.in_features)
        if images := [query.image for query in queries if query.image is not None]:
            with frozen():
                cells[there] = self._cells(images).to(device)
        x = self.norm(F.gelu(self.project(cells)) + self.place)
        asked = self.attention(self.ask.expand(len(queries), -1, -1), self.attention.project(x))
        hidden = self.mix(asked.flatten(1))
        walked = self.of_relation(hidden) @ relations.T / relations.shape[1] ** 0.5
        facts = self.of_facts(hidden) if hasattr(self, "of_facts") else hidden[:, :0]
        return Seen(self.level(self.places(hidden)), there, walked, facts)

    def told(
        self, seen: Seen, state: Tensor, hidden: Tensor, relations: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """What counts of it for P partial paths: logits `[P, 2R]` of relations and `[P, k]` of facts.

        Args:
            state: `[P]` long, the picture of each path.
            hidden: `[P, width]`, h of each path.
            relations: `[2R, width]`.
        """
        scale = relations.shape[1] ** 0.5
        one, two = (part @ relations.T / scale for part in self.trust(hidden).chunk(2, dim=1))
        there = seen.there[state][:, None]
        walked = there * one * seen.relations[state]
        if hasattr(self, "trust_near"):
            return walked, there * self.trust_near(hidden) * seen.facts[state]
        if not len(self.facts):
            return walked, None
        return walked, there * two[:, self.facts] * seen.facts[state]

    def _cells(self, images: Sequence[Any]) -> Tensor:
        """`[n, cells, channels]` of about unit numbers, in training from a picture that is moved a little."""
        encoder, side = self._frozen[0], self.side
        cells = encoder.encode(images).view(len(images), side, side, -1) * encoder.dim**0.5
        if self.training and side > 2 * SHIFT:
            shift = torch.randint(-SHIFT, SHIFT + 1, (2,)).tolist()
            cells = cells.roll(cast(tuple[int, int], tuple(shift)), dims=(1, 2))
        flat: Tensor = cells.flatten(1, 2)
        return flat
