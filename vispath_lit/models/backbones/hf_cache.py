"""Keys and values of the rows of a batch, with room to grow into, and joined from rows read alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

HEADROOM = 64  # tokens, and an eighth of those that are there


class GrowingLayer(DynamicLayer):  # type: ignore[no-untyped-call]
    """Keys and values with room behind them: a step copies its own tokens, and not all those before it.

    The room is written in place, so that a layer must not be copied and grown twice.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room: tuple[Tensor, Tensor] | None = None
        self._given: Tensor | None = None  # the keys as they were handed out: others lie elsewhere

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        read = self.get_seq_length()
        length = read + key_states.shape[-2]
        room = self._room
        if room is None or self.keys is not self._given or length > room[0].shape[-2]:
            old = held(self) if read else ()
            room = _room(length, key_states), _room(length, value_states)
            for new, states in zip(room, old, strict=False):
                new[:, :, :read] = states
        for whole, states in zip(room, (key_states, value_states), strict=True):
            whole[:, :, read:length] = states
        return self._hold(room, length)

    @classmethod
    def joined(cls, layers: Sequence[GrowingLayer]) -> GrowingLayer:
        """One layer with the rows of all, `[1, heads, tokens, d]` each, padded with zeros on the left.

        The others are empty afterwards: memory holds one layer twice, and not all of them.
        """
        width = max(layer.get_seq_length() for layer in layers)
        first = held(layers[0])
        rooms = tuple(_room(width, states, rows=len(layers)) for states in first)
        for row, layer in enumerate(layers):
            for room, states in zip(rooms, held(layer), strict=True):
                room[row, :, : width - states.shape[-2]] = 0
                room[row, :, width - states.shape[-2] : width] = states[0]
            layer.reset()
        made = cls()
        made._hold((rooms[0], rooms[1]), width)
        return made

    def batch_repeat_interleave(self, repeats: int) -> None:
        self._room = None
        super().batch_repeat_interleave(repeats)

    def batch_select_indices(self, indices: Tensor) -> None:
        self._room = None
        super().batch_select_indices(indices)

    def reset(self) -> None:
        self._room = self._given = self.keys = self.values = None
        self.is_initialized = False

    def _hold(self, room: tuple[Tensor, Tensor], length: int) -> tuple[Tensor, Tensor]:
        """Hands out what is read of a room."""
        keys, values = room[0][:, :, :length], room[1][:, :, :length]
        self._room, self._given = room, keys
        self.keys, self.values = keys, values
        self.device, self.is_initialized = keys.device, True
        return keys, values


def _room(length: int, states: Tensor, rows: int | None = None) -> Tensor:
    """An unwritten tensor for so many tokens and some more, else like `[rows, heads, tokens, d]` states."""
    many = states.shape[0] if rows is None else rows
    return states.new_empty(many, states.shape[1], length + length // 8 + HEADROOM, states.shape[-1])


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
    """One cache of the rows of all, which are empty afterwards.

    Raises:
        TypeError: a layer that does not attend to everything, and would count padding.
    """
    cache = DynamicCache()
    for layers in zip(*(one.layers for one in caches), strict=True):
        if other := {type(layer).__name__ for layer in layers} - {GrowingLayer.__name__}:
            raise TypeError(f"rows of {other.pop()} cannot be joined")
        cache.layers.append(GrowingLayer.joined(layers))
    return cache
