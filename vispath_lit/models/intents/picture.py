"""What a picture tells of the next step, read from the cells of frozen image features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.models.attention import Attention
from vispath_lit.models.frozen import frozen
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Query

TAIL_DROPOUT = 0.75
"""Dropout of the look at the tail, which has more facts than its picture shows: to be learned by heart."""
LEAST_SHARE = 0.02
"""The least share of a fact before anything is learned, and the most is all but this."""


class Seen(NamedTuple):
    """What pictures tell.

    Attributes:
        there: `[S]` bool, whether there is a picture.
        relations: `[S, 2R]` logits of the signed relations of a step that the words leave open.
        tails: `[S, k]`, what the step's tail is like: of facts, what their log-odds gain by the picture; of
            other neighbourhoods, the vector that they are multiplied with.
        odds: `[S, k]`, the log-odds of the tail's facts; `[S, 0]` of other neighbourhoods.
    """

    there: Tensor
    relations: Tensor
    tails: Tensor
    odds: Tensor


class Look(nn.Module):
    """Trained questions to a picture, as in the resampler of Alayrac et al. 2022.

    Each question asks all cells, and what they answer is mixed, so that the outcome can hold what follows
    from several cells, such as which way an arrow points.

    Args:
        channels: of a cell.
        cells: of a picture.
        width: of the attention.
        heads: of the attention; divides `width`.
        questions: put to a picture.
        dropout: inside the mixture.
    """

    def __init__(
        self, channels: int, cells: int, width: int, heads: int, questions: int, dropout: float
    ) -> None:
        super().__init__()
        self.project = nn.Linear(channels, width)
        self.place = nn.Parameter(torch.randn(cells, width) * 0.1)
        self.norm = nn.LayerNorm(width)
        self.ask = nn.Parameter(torch.randn(questions, width))
        self.attention = Attention(width, heads)
        self.mix = nn.Sequential(nn.Linear(questions * width, 2 * width), nn.GELU(), nn.Dropout(dropout))

    def forward(self, cells: Tensor) -> Tensor:
        """`[S, 2 * width]` of pictures' cells `[S, cells, channels]`."""
        x = self.norm(F.gelu(self.project(cells)) + self.place)
        asked = self.attention(self.ask.expand(len(cells), -1, -1), self.attention.project(x))
        mixed: Tensor = self.mix(asked.flatten(1))
        return mixed


class PictureReader(nn.Module):
    """Tells of a step which relation is walked and what its tail is like; the words tell what of it counts.

    A few hundred pictures decide a step of a walk: too few to learn to see from the walk's losses alone. So
    the picture also has losses of its own (`models/picture_loss.py`). What it tells adds to the logits of the
    edges as far as the intent trusts it: which relations count, and which relations' facts, the words tell.

    Relation and tail are looked at apart: a shared look learns arrows worse, as all the facts of whatever
    lies behind an arrow are learned by heart with it. An image encoder without cells is one cell.

    Args:
        width: of relations' vectors and of the attention.
        heads: of the attention.
        questions: put to a picture by each of the two looks.
        dropout: inside the mixtures; of the tail at least `TAIL_DROPOUT`.
        facts: `[k]` long, the signed relation of each fact that a neighbourhood tells; empty without any.
        shares: `[k]`, how often each is true where its relation is there. What a picture tells is measured
            from there, or a fact that most entities have would count for whoever has it, seen or not.
        near: k of a neighbourhood that tells something other than facts; 0 without one.
    """

    facts: Tensor

    def __init__(
        self,
        image_encoder: ImageEncoder,
        width: int,
        heads: int,
        questions: int,
        dropout: float,
        facts: Tensor,
        shares: Tensor,
        near: int = 0,
    ) -> None:
        super().__init__()
        cells = getattr(image_encoder, "cells", None)
        self._frozen: tuple[ImageEncoder] = (image_encoder if cells is None else cells,)
        self.near = near
        self.cells = 1 if cells is None else int(cells.side) ** 2
        self.channels = self._frozen[0].dim // self.cells
        looked = self.channels, self.cells, width, heads, questions, dropout
        self.relation_look = Look(*looked)
        self.of_relation = nn.Linear(2 * width, width)
        self.register_buffer("facts", facts, persistent=False)
        if told := len(facts) or near:
            self.tail_look = Look(*looked[:-1], max(dropout, TAIL_DROPOUT))
            self.of_facts = nn.Linear(2 * width, told, bias=bool(near))
        if len(facts):
            self.usual = nn.Parameter(torch.logit(shares.float(), eps=LEAST_SHARE))
        if near:
            self.trust_near = Correction(width, 1)
        self.trust = Correction(width, 2 * width)

    def forward(self, queries: Sequence[Query], relations: Tensor) -> Seen:
        """What S pictures tell; where there is none, nothing of it counts.

        Args:
            relations: `[2R, width]`.
        """
        device = relations.device
        there = torch.tensor([query.image is not None for query in queries], device=device)
        cells = relations.new_zeros(len(queries), self.cells, self.channels)
        if images := [query.image for query in queries if query.image is not None]:
            with frozen():
                cells[there] = self._cells(images).to(cells)
        walked = self.of_relation(self.relation_look(cells)) @ relations.T / relations.shape[1] ** 0.5
        if not (len(self.facts) or self.near):
            return Seen(there, walked, walked[:, :0], walked[:, :0])
        tails = self.of_facts(self.tail_look(cells))
        return Seen(there, walked, tails, tails + self.usual if len(self.facts) else tails[:, :0])

    def told(
        self, seen: Seen, state: Tensor, hidden: Tensor, relations: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """What counts of it for P partial paths: logits `[P, 2R]` of relations and `[P, k]` of tails.

        Args:
            state: `[P]` long, the picture of each path.
            hidden: `[P, width]`, h of each path.
            relations: `[2R, width]`.
        """
        scale = relations.shape[1] ** 0.5
        one, two = (part @ relations.T / scale for part in self.trust(hidden).chunk(2, dim=1))
        there = seen.there[state][:, None]
        walked = there * one * seen.relations[state]
        if self.near:
            return walked, there * self.trust_near(hidden) * seen.tails[state]
        if not len(self.facts):
            return walked, None
        return walked, there * two[:, self.facts] * seen.tails[state]

    def _cells(self, images: Sequence[Any]) -> Tensor:
        """`[n, cells, channels]` of about unit numbers."""
        encoder = self._frozen[0]
        cells: Tensor = encoder.encode(images).view(len(images), self.cells, -1) * encoder.dim**0.5
        return cells
