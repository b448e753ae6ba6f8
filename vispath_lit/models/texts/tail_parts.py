"""What entities bring to the chains that end at them: composed once, remembered within a bound."""

from __future__ import annotations

import threading

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.models.texts.blocks import blockwise
from vispath_lit.models.texts.composers import ChainComposer
from vispath_lit.models.texts.labels import LabelVectors

CHUNK = 4096  # entities composed at once
Index = NDArray[np.int64]


class TailParts:
    """`ChainComposer.tail_part` of entities as float16.

    The first entities that are met are remembered, until the bound is reached; the hubs of a large graph are
    among them. Parts that are composed anew are rounded as well, so that memory never decides a text's bits.

    Args:
        limit: bytes that remembered parts may take.
    """

    def __init__(self, labels: LabelVectors, composer: ChainComposer, limit: int) -> None:
        self.labels = labels
        self.composer = composer
        width, entities = 3 * composer.width + composer.dim, labels.graph.num_entities
        self.capacity = max(0, min(entities, limit // (2 * width)))
        # Zeros take no memory until they are written: a graph of millions costs what is used of it.
        self._parts = torch.from_numpy(np.zeros((self.capacity, width), dtype=np.float16))
        self._place = np.zeros(entities, dtype=np.int32)  # Row + 1; 0 where nothing is remembered.
        self._used = 0
        self._lock = threading.Lock()  # Searches side by side meet the same entities.

    @torch.no_grad()
    def rows(self, entities: Tensor) -> tuple[Tensor, Tensor]:
        """A table `[m, parts]` and the row of each of `[n]` entities in it."""
        wanted = entities.numpy()
        row = self._place[wanted].astype(np.int64) - 1
        unknown = row < 0
        if not unknown.any():
            return self._parts, torch.from_numpy(row)
        missing = np.unique(wanted[unknown])
        fresh = self._compose(missing)
        if self._remember(missing, fresh):
            return self._parts, torch.from_numpy(self._place[wanted].astype(np.int64) - 1)
        used, row[~unknown] = np.unique(row[~unknown], return_inverse=True)
        row[unknown] = len(used) + np.searchsorted(missing, wanted[unknown])
        return torch.cat([self._parts[torch.from_numpy(used)], fresh]), torch.from_numpy(row)

    def _compose(self, entities: Index) -> Tensor:
        """`[n, parts]` of `[n]` entities."""
        parts = torch.empty((len(entities), self._parts.shape[1]), dtype=torch.float16)
        for low in range(0, len(entities), CHUNK):
            some = torch.from_numpy(entities[low : low + CHUNK])
            parts[low : low + CHUNK] = blockwise(self.composer.tail_part, self.labels.entities(some))
        return parts

    def _remember(self, entities: Index, parts: Tensor) -> bool:
        """Keeps the parts of `[n]` distinct entities; False where there is no room for all of them."""
        with self._lock:
            new = np.flatnonzero(self._place[entities] == 0)
            rows = np.arange(self._used, self._used + len(new), dtype=np.int32)
            if self._used + len(new) > self.capacity:
                return False
            self._parts[self._used : self._used + len(new)] = parts[torch.from_numpy(new)]
            self._place[entities[new]] = rows + 1  # Last, as others read it without the lock.
            self._used += len(new)
            return True
