"""A cache with room behind it holds what one without holds, and copies less."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from vispath_lit.models.backbones.hf_cache import GrowingLayer, held, joined_cache


def states(rows: int, tokens: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 2, tokens, 4).to(dtype), torch.randn(rows, 2, tokens, 3).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_holds_what_a_dynamic_layer_holds(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    draw = torch.Generator().manual_seed(1)
    plain, growing, rows = DynamicLayer(), GrowingLayer(), 3  # type: ignore[no-untyped-call]
    for _ in range(300):
        what = int(torch.randint(8, (1,), generator=draw))
        if what < 5 or not plain.is_initialized:
            new = states(rows, 1 if what else 90, dtype)
            expected, found = plain.update(*new), growing.update(*new)
            assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
        elif what == 5:
            keep = torch.randperm(rows, generator=draw)[: max(1, rows - 1)]
            rows = len(keep)
            for layer in (plain, growing):
                layer.batch_select_indices(keep)
        elif what == 6 and rows < 4:
            rows *= 2
            for layer in (plain, growing):
                layer.batch_repeat_interleave(2)
        elif what == 7 and plain.get_seq_length() > 400:
            for layer in (plain, growing):
                layer.reset()
        assert growing.get_seq_length() == plain.get_seq_length()


def test_a_step_moves_nothing_while_there_is_room() -> None:
    layer = GrowingLayer()
    layer.update(*states(2, 10))
    place = held(layer)[0].data_ptr()
    for _ in range(60):
        layer.update(*states(2, 1))
    assert held(layer)[0].data_ptr() == place


def test_rows_chosen_by_a_view_are_not_mistaken_for_the_room() -> None:
    layer = GrowingLayer()
    layer.update(*states(3, 10))
    layer.keys, layer.values = (part[:1] for part in held(layer))
    keys, _ = layer.update(*states(1, 1))
    assert keys.shape == (1, 2, 11, 4)


def test_joined_rows_end_alike_and_their_layers_are_empty() -> None:
    layers, parts = [GrowingLayer(), GrowingLayer()], [states(1, 5), states(1, 8)]
    for layer, part in zip(layers, parts, strict=True):
        layer.update(*part)
    joined = GrowingLayer.joined(layers)
    keys, values = held(joined)
    assert torch.equal(keys[0, :, 3:], parts[0][0][0])
    assert torch.equal(values[1], parts[1][1][0])
    assert not keys[0, :, :3].any()
    assert [layer.get_seq_length() for layer in layers] == [0, 0]


def test_layers_with_a_window_are_not_joined() -> None:
    cache = DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(4)]
    with pytest.raises(TypeError, match="DynamicSlidingWindowLayer"):
        joined_cache([cache])
