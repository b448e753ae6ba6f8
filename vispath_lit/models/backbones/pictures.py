"""Pictures of queries: each distinct one once, as tokens of frozen image features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from PIL.Image import Image
from torch import Tensor

from vispath_lit.encoders.efficientnet import CHANNELS, EfficientNetLite
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Query


def distinct_pictures(queries: Sequence[Query]) -> tuple[list[Image], Tensor]:
    """The distinct picture objects in order, and `[S]` long which one a query has (-1: none)."""
    place: dict[int, int] = {}
    images: list[Image] = []
    index = torch.full((len(queries),), -1)
    for i, query in enumerate(queries):
        if query.image is None:
            continue
        if id(query.image) not in place:
            place[id(query.image)] = len(images)
            images.append(query.image)
        index[i] = place[id(query.image)]
    return images, index


class PictureCells:
    """The cells of EfficientNet's last feature map, cached on disk by the picture's pixels.

    The run's own image encoder is asked where its grid is the same, so that no picture is read twice.

    Args:
        image_encoder: the run's.
        cache_dir: as the run's.
        grid: cells a side.
    """

    def __init__(self, image_encoder: ImageEncoder, cache_dir: Path | str | None, grid: int) -> None:
        own = isinstance(image_encoder, EfficientNetLite) and image_encoder.pool == grid
        self.encoder = image_encoder if own else EfficientNetLite(cache_dir, pool=grid)
        self.grid = grid
        self.channels = CHANNELS

    def __call__(self, images: Sequence[Image]) -> Tensor:
        """`[n, grid * grid + 1, channels]`: the cells row by row, then their mean."""
        flat = self.encoder.encode(images) * self.grid  # unit vectors: a cell's length is about 1 / grid
        cells = flat.reshape(len(images), self.channels, self.grid**2).transpose(1, 2)
        return torch.cat([cells, cells.mean(dim=1, keepdim=True)], dim=1)
