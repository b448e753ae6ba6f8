"""The features of a graph's reference images: computed once, kept in one file, read memory-mapped."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor

from vispath_lit.errors import DataError
from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.similarity import grouped_dot
from vispath_lit.progress import track
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Rows
from vispath_lit.whole import NO_ARRAY, whole_file

log = logging.getLogger(__name__)
CHUNK = 64  # Pictures opened at once.
BLOCK = 8192  # Rows of the table taken into memory at once.


class ReferenceImages:
    """Unit vectors of all n reference images under one encoder.

    A picture that cannot be read is logged and keeps a row of zeros, which is near to nothing.

    Args:
        cache_dir: the table is kept below it, named by the fingerprints of graph and encoder; None keeps it
            in memory.
    """

    def __init__(
        self, graph: KnowledgeGraph, image_encoder: ImageEncoder, cache_dir: Path | str | None
    ) -> None:
        self.graph = graph
        self.image_encoder = image_encoder
        self._file = None if cache_dir is None else Path(cache_dir) / "references" / f"{self._name()}.npy"

    @cached_property
    def vectors(self) -> NDArray[np.float16]:
        """`[n, d]` float16 unit rows; zeros for an unreadable picture."""
        shape = (self.rows, self.image_encoder.dim)
        if self._file is None:
            return self._computed(shape)
        if not self._valid(shape):
            self._store(self._computed(shape))
        found: NDArray[np.float16] = np.load(self._file, mmap_mode="r", allow_pickle=False)
        return found

    @property
    def rows(self) -> int:
        """Of the table, n."""
        return len(self.graph.image_entity)

    @cached_property
    def entities(self) -> NDArray[np.int64]:
        """`[m]` the distinct entities that have a picture, ascending."""
        return np.unique(self.graph.image_entity)

    def nearest(self, images: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The entities whose pictures are nearest to each of `[S, d]` images, by their best picture.

        One matrix product makes a shortlist; its cosines are then taken anew row by row, so that a score does
        not depend on the batch. Ties go to the lower entity.

        Returns:
            Entities `[S, k]` long and cosines `[S, k]`, best first; k is `count`, or m where that is less.
        """
        images = images.cpu().float()
        rough = self._best_of_each(self._products(images))
        short = torch.sort(rough, dim=1, descending=True, stable=True).indices[:, :count].sort(dim=1).values
        entities = torch.from_numpy(self.entities)[short]
        cosines = self._cosines(images, entities)
        order = torch.sort(cosines, dim=1, descending=True, stable=True).indices
        return entities.gather(1, order), cosines.gather(1, order)

    def _products(self, images: Tensor) -> Tensor:
        """`[S, n]` rough cosines of images and pictures."""
        blocks = [
            images @ torch.from_numpy(self.vectors[low : low + BLOCK].astype(np.float32)).T
            for low in range(0, len(self.vectors), BLOCK)
        ]
        return torch.cat(blocks, dim=1) if blocks else torch.zeros(len(images), 0)

    def _best_of_each(self, scores: Tensor) -> Tensor:
        """`[S, m]`: the maximum of `[S, n]` scores of pictures over those of each entity."""
        owner = torch.from_numpy(np.searchsorted(self.entities, self.graph.image_entity))
        best = scores.new_full((len(scores), len(self.entities)), -torch.inf)
        return best.scatter_reduce(1, owner.expand(len(scores), -1), scores, "amax")

    def _cosines(self, images: Tensor, entities: Tensor) -> Tensor:
        """`[S, k]`: each image's cosine with the nearest picture of each of its entities."""
        flat = entities.flatten().numpy()
        low = np.searchsorted(self.graph.image_entity, flat)
        owner, picture = ranges(low, np.searchsorted(self.graph.image_entity, flat, side="right") - low)
        distinct, index = np.unique(picture, return_inverse=True)
        table = torch.from_numpy(self.vectors[distinct].astype(np.float32))
        of_pair = torch.from_numpy(owner)
        rows = Rows(table, torch.from_numpy(index))
        products = grouped_dot(rows, of_pair // max(entities.shape[1], 1), images)
        best = torch.full((len(flat),), -torch.inf).scatter_reduce(0, of_pair, products, "amax")
        return best.reshape(entities.shape)

    def _name(self) -> str:
        """What the table depends on."""
        return f"{self.graph.fingerprint}-{self.image_encoder.fingerprint}"

    def _computed(self, shape: tuple[int, int]) -> NDArray[np.float16]:
        vectors = np.zeros(shape, dtype=np.float16)
        files = self.graph.image_files
        for low in track(range(0, len(files), CHUNK), "reading reference images"):
            images = readable(files, range(low, min(low + CHUNK, len(files))))
            if images:
                vectors[list(images)] = self.image_encoder.encode(list(images.values())).cpu().numpy()
        return vectors

    def _valid(self, shape: tuple[int, int]) -> bool:
        """Whether the file holds such a table; a damaged one is computed anew."""
        if self._file is None or not self._file.is_file():
            return False
        try:
            kept = np.load(self._file, mmap_mode="r", allow_pickle=False)
        except (OSError, *NO_ARRAY) as error:
            log.warning("%s is damaged (%s) and is written anew", self._file, error)
            return False
        return bool(kept.shape == shape and kept.dtype == np.float16)

    def _store(self, vectors: NDArray[np.float16]) -> None:
        assert self._file is not None
        with whole_file(self._file) as partial, partial.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)


def readable(files: Sequence[str], rows: Iterable[int]) -> dict[int, Image]:
    """The pictures of some rows; one that cannot be read is logged and left out."""
    images = {}
    for row in rows:
        try:
            images[row] = load_image(files[row])
        except DataError as error:
            log.warning("a reference image is left out: %s", error)
    return images
