"""The adapter of a vision-language model learns, and nothing else does."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from opened_vlms import STATEMENT, base_weights, is_close, opened, queries, rows, train_a_step, written
from safetensors.torch import load_file, save_file
from tiny_vlms import FAMILIES
from torch import nn

from vispath_lit.models.backbones.hf import HuggingFaceBackbone
from vispath_lit.types import Query


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return written(tmp_path_factory)


@pytest.fixture(params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    return folders[request.param]


def test_a_trained_adapter_alone_is_saved_and_reloads_to_the_same_values(
    folder: Path, tmp_path: Path
) -> None:
    backbone = opened(folder)
    frozen = {name: weight.clone() for name, weight in base_weights(backbone).items()}
    before = backbone(queries(), [STATEMENT] * 4)
    train_a_step(backbone)
    after = backbone(queries(), [STATEMENT] * 4)
    assert any((a - b).abs().max() > 1e-4 for a, b in zip(rows(before), rows(after), strict=True))
    assert all(torch.equal(weight, frozen[name]) for name, weight in base_weights(backbone).items())
    save_file(backbone.state_dict(), tmp_path / "adapter.safetensors")
    assert set(backbone.state_dict()) == {name for name, _ in backbone.named_parameters()}
    assert all("lora_" in name for name in backbone.state_dict())

    torch.manual_seed(7)
    fresh = HuggingFaceBackbone(str(folder), dtype="float32", rank=4).eval()
    fresh.load_state_dict(load_file(tmp_path / "adapter.safetensors"), strict=True)
    for one, other in zip(fresh(queries(), [STATEMENT] * 4), after, strict=True):
        assert torch.equal(one, other)


def test_gradients_reach_the_language_model_s_adapter_and_nothing_else(folder: Path) -> None:
    backbone = opened(folder).train()
    hidden, mask = backbone(queries(), [STATEMENT] * 4)
    hidden[mask].pow(3).sum().backward()
    assert base_weights(backbone)
    assert all(weight.grad is None for weight in base_weights(backbone).values())
    adapters = dict(backbone.named_parameters())
    assert len(adapters) == 2 * 2 * 4  # two matrices, two layers, q k v o
    for name, weight in adapters.items():
        assert "vision" not in name
        assert "visual" not in name
        assert weight.grad is not None
        if "lora_B" in name:  # the other one waits for it to leave zero
            assert weight.grad.abs().max() > 0


def test_rank_0_is_the_model_as_it_is(folder: Path) -> None:
    plain = HuggingFaceBackbone(str(folder), dtype="float32", rank=0).eval()
    assert not list(plain.parameters())
    assert not plain.state_dict()
    queries, statements = [Query("Which money?"), Query("Who?")], ["", "France capital Paris"]
    expected, mask = opened(folder)(queries, statements)
    hidden, same = plain.train()(queries, statements)
    assert not hidden.requires_grad
    torch.testing.assert_close(hidden[same], expected[mask])
    assert plain([], [])[0].shape == (0, 0, plain.dim)


class Counter:
    """A forward hook that counts."""

    calls = 0

    def __call__(self, *_: object) -> None:
        self.calls += 1


def test_gradient_checkpointing_changes_memory_and_no_value(folder: Path) -> None:
    grads, passes = [], []
    for checkpointing in (False, True):
        backbone = opened(folder, gradient_checkpointing=checkpointing, dropout=0.0).train()
        counter = Counter()
        for name, module in backbone.adapter.model.named_modules():
            if name.endswith("layers.1.self_attn") and "vision" not in name:
                module.register_forward_hook(counter)
        hidden, mask = backbone(queries(), [STATEMENT] * 4)
        hidden[mask].pow(3).sum().backward()
        grads.append([weight.grad for weight in backbone.parameters()])
        passes.append(counter.calls)
    assert passes[1] == 2 * passes[0] > 0
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="bitsandbytes is an option")
@pytest.mark.parametrize("kind", ["8bit", "4bit"])
def test_a_quantised_language_model_trains_and_reloads(kind: str, folder: Path) -> None:
    backbone = opened(folder, quantize=kind)
    packed = [
        name
        for name, module in backbone.adapter.model.named_modules()
        if type(module).__name__ in ("Linear8bitLt", "Linear4bit")
    ]
    assert packed
    assert not [name for name in packed if "vis" in name or "connector" in name or "projector" in name]
    before = backbone(queries(), [STATEMENT] * 4)
    train_a_step(backbone)
    after = backbone(queries(), [STATEMENT] * 4)
    assert (before[0] - after[0]).abs().max() > 1e-4
    fresh = opened(folder, quantize=kind)
    fresh.load_state_dict(backbone.state_dict(), strict=True)
    assert torch.equal(fresh(queries(), [STATEMENT] * 4)[0], after[0])


def test_dropout_acts_in_training_alone(folders: dict[str, Path]) -> None:
    backbone = opened(folders["qwen3_vl"], dropout=0.5)
    train_a_step(backbone)
    still = backbone(queries(), [STATEMENT] * 4)
    assert is_close(still, backbone(queries(), [STATEMENT] * 4), 0)
    backbone.train()
    assert not torch.equal(still[0], backbone(queries(), [STATEMENT] * 4)[0])


def test_the_model_follows_its_adapter(folders: dict[str, Path]) -> None:
    parent = nn.ModuleDict({"vlm": opened(folders["qwen2_5_vl"])}).double()
    backbone = parent["vlm"]
    assert isinstance(backbone, HuggingFaceBackbone)
    assert backbone.adapter.model.dtype == torch.float64
    inside = {id(weight) for weight in backbone.adapter.model.parameters()}
    assert all(id(weight) in inside for weight in parent.parameters())
