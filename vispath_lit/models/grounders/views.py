"""Features of new views of some reference images: what a grounder practises on, computed once."""

from __future__ import annotations

from dataclasses import astuple
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.data.views import ViewSettings, view
from vispath_lit.encoders.threads import side_by_side
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.references import ReferenceImages, readable
from vispath_lit.progress import track
from vispath_lit.protocols import ImageEncoder

CHUNK = 16  # Pictures of one forward pass.
MOST_OF_ONE = 2  # Views of one picture.


class ReferenceViews(ReferenceImages):
    """Unit vectors of views of reference images, every kind of picture about equally often.

    They are kept as those of the images themselves; a view of an unreadable picture keeps a row of zeros.

    Args:
        count: views, at most; a picture has at most two.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None,
        settings: ViewSettings,
        count: int,
    ) -> None:
        self.settings = settings
        self.count = count
        super().__init__(graph, image_encoder, cache_dir)

    @cached_property
    def pictures(self) -> NDArray[np.int64]:
        """`[V]` the picture that each view shows, in a seeded order that takes the kinds in turn."""
        kinds = np.array(self.graph.image_kinds)
        order = np.random.default_rng(0).permutation(len(kinds))
        turn = np.zeros(len(kinds), dtype=np.int64)
        for kind in np.unique(kinds):
            mine = order[kinds[order] == kind]
            turn[mine] = np.arange(len(mine))
        once = order[np.argsort(turn[order], kind="stable")]
        return np.tile(once, MOST_OF_ONE)[: self.count]

    @property
    def rows(self) -> int:
        return len(self.pictures)

    def _name(self) -> str:
        made = xxhash.xxh3_64_hexdigest(f"{astuple(self.settings)} {self.count} {MOST_OF_ONE}".encode())
        return f"{super()._name()}-{made}"

    def _computed(self, shape: tuple[int, int]) -> NDArray[np.float16]:
        vectors = np.zeros(shape, dtype=np.float16)
        chunks = side_by_side(self._chunk, range(0, shape[0], CHUNK), torch.get_num_threads())
        for rows, values in track(chunks, "views of reference images", total=-(-shape[0] // CHUNK)):
            vectors[rows] = values
        return vectors

    def _chunk(self, low: int) -> tuple[list[int], NDArray[np.float32]]:
        """Numbers of views from `low` on and their vectors."""
        numbers = range(low, min(low + CHUNK, self.rows))
        shown = self.pictures[low : low + CHUNK].tolist()
        images = readable(self.graph.image_files, dict.fromkeys(shown))
        made = {
            number: view(images[picture], self.settings, np.random.default_rng(number))
            for number, picture in zip(numbers, shown, strict=True)
            if picture in images
        }
        if not made:
            return [], np.zeros((0, self.image_encoder.dim), dtype=np.float32)
        # A view is seen but once: an encoder that can do without its cache is asked to.
        compute = getattr(self.image_encoder, "compute", self.image_encoder.encode)
        vectors: Tensor = compute(list(made.values()))
        return list(made), vectors.cpu().numpy()
