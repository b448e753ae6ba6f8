"""Pictures in detail: earlier feature maps with their places, shrunk by a fixed random projection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import xxhash
from PIL.Image import Image
from torch import Tensor


class Maps(NamedTuple):
    """Feature maps `[n, channels, rows, columns]`: at 1/8, 1/16 and 1/32 of the size, and the head's."""

    early: Tensor
    middle: Tensor
    last: Tensor
    head: Tensor


# Of the middle and the early map: channels, cells a side, and numbers kept of each cell. 37 KB a picture.
SHAPES = ((112, 14, 32), (40, 28, 16))


class FineFeatures:
    """An `ImageEncoder` of detail and place.

    What differs in one small spot, such as a marked cell, looks alike once a map is pooled; and what the
    first half of the network sees of written words its end has forgotten. A random projection keeps the
    angles between cells about as they are.

    Args:
        base: fingerprint of the network and its input.
        read: the feature maps of pictures.
        cached: unit rows of pictures by kind, out of a cache that asks `rows` for those it lacks.
    """

    def __init__(
        self,
        base: str,
        read: Callable[[Sequence[Image]], Maps],
        cached: Callable[[Sequence[Image], str], Tensor],
    ) -> None:
        self.read = read
        self.cached = cached
        rng = np.random.default_rng(0)
        self.mixes = [
            torch.from_numpy((rng.standard_normal((channels, kept)) / kept**0.5).astype(np.float32))
            for channels, _, kept in SHAPES
        ]
        self.shapes = tuple((kept, cells) for _, cells, kept in SHAPES)
        self.dim = sum(kept * cells**2 for kept, cells in self.shapes)
        self.fingerprint = xxhash.xxh3_128_hexdigest(f"{base} fine {SHAPES}".encode())

    def encode(self, images: Sequence[Image]) -> Tensor:
        """`[n, d]` float32 with unit rows."""
        return self.cached(images, "fine")

    @torch.no_grad()
    def compute(self, images: Sequence[Image]) -> Tensor:
        """The same without a cache, for pictures that are seen but once."""
        return self.rows(self.read(images))

    def rows(self, maps: Maps) -> Tensor:
        """`[n, d]` unit rows, each map half of their squared length."""
        parts = []
        for values, (_, cells, _), mix in zip((maps.middle, maps.early), SHAPES, self.mixes, strict=True):
            pooled = F.adaptive_avg_pool2d(values, cells)
            parts.append(F.normalize(torch.einsum("nchw,cd->ndhw", pooled, mix).flatten(1), dim=1))
        return F.normalize(torch.cat(parts, dim=1), dim=1)


class CellFeatures:
    """An `ImageEncoder` of places: the last map before the network's head, cell by cell.

    Where an arrow begins and ends, or which colours lie side by side, a pooled map has forgotten.

    Args:
        base, cached: as of `FineFeatures`.
        side: cells a side.
    """

    channels = 320

    def __init__(self, base: str, cached: Callable[[Sequence[Image], str], Tensor], side: int) -> None:
        self.cached = cached
        self.side = side
        self.dim = self.channels * side**2
        self.fingerprint = xxhash.xxh3_128_hexdigest(f"{base} cells {self.channels}".encode())

    def encode(self, images: Sequence[Image]) -> Tensor:
        """`[n, d]` float32 with unit rows: the cells row by row, each with its channels."""
        return self.cached(images, "cells")

    def rows(self, maps: Maps) -> Tensor:
        """`[n, d]` unit rows."""
        return F.normalize(maps.last.flatten(2).transpose(1, 2).flatten(1), dim=1)
