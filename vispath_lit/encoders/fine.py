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
    """Feature maps `[n, channels, rows, columns]`: at a 16th and at a 32nd of the size, and the head's."""

    middle: Tensor
    last: Tensor
    head: Tensor


# Of the middle and the last map: channels, cells a side, and numbers kept of each cell. 18.4 KB a picture.
SHAPES = ((112, 14, 32), (320, 7, 64))


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
        for values, (_, cells, _), mix in zip(maps[:2], SHAPES, self.mixes, strict=True):
            pooled = F.adaptive_avg_pool2d(values, cells)
            parts.append(F.normalize(torch.einsum("nchw,cd->ndhw", pooled, mix).flatten(1), dim=1))
        return F.normalize(torch.cat(parts, dim=1), dim=1)
