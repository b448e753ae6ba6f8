"""Keys and values of the rows of a batch, with room to grow into, and joined from rows read alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

HEADROOM = 64  # tokens, and an eighth of those that are there


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values with room behind them: a step copies its own tokens, and not all those before it."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room: tuple[Tensor, Tensor] | None = None

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        new, read = (key_states, value_states), self.get_seq_length()
        length = read + key_states.shape[-2]
        if self._room is None or not self._fits(self._room[0], length):
            capacity = length + length // 8 + HEADROOM
            keys, values = (states.new_empty(*states.shape[:2], capacity, states.shape[-1]) for states in new)
            if read:
                keys[:, :, :read], values[:, :, :read] = held(self)
            self._room = keys, values
        for room, states in zip(self._room, new, strict=True):
            room[:, :, read:length] = states
        keys, values = (room[:, :, :length] for room in self._room)
        self._hold(keys, values)
        return keys, values

    @classmethod
    def joined(cls, layers: Sequence[DynamicLayer]) -> GrowingLayer:
        """One layer with the rows of all, `[1, heads, tokens, d]` each, padded with zeros on the left."""
        width = max(layer.get_seq_length() for layer in layers)
        made = cls()
        keys, values = (
            torch.cat([F.pad(row, (0, 0, width - row.shape[-2], 0)) for row in rows])
            for rows in zip(*map(held, layers), strict=True)
        )
        made._hold(keys, values)
        return made

    def _fits(self, room: Tensor, length: int) -> bool:
        """Whether the room holds today's keys: where rows were dropped or repeated, they lie elsewhere."""
        return length <= room.shape[-2] and room.data_ptr() == held(self)[0].data_ptr()

    def _hold(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values
        self.device, self.is_initialized = keys.device, True


def held(layer: DynamicLayer) -> tuple[Tensor, Tensor]:
    """The keys and values of a layer that has read something."""
    assert layer.keys is not None
    assert layer.values is not None
    return layer.keys, layer.values


def growing_cache(config: Any) -> DynamicCache:
    """An empty cache of a model; layers with a window or a running state are as they always are."""
    cache = DynamicCache(config=config)
    cache.layers = [GrowingLayer() if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def joined_cache(caches: Sequence[DynamicCache]) -> DynamicCache:
    """One cache of the rows of all, of layers that attend to everything."""
    cache = DynamicCache()
    cache.layers = [GrowingLayer.joined(layers) for layers in zip(*(c.layers for c in caches), strict=True)]
    return cache
