"""Tiny checkpoints of real families go through the code that opens the large ones."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tiny_vlms import FAMILIES
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.hf import HuggingFaceBackbone
from vispath_lit.models.backbones.hf_prompts import SHORTEST, STRETCH, fitted
from vispath_lit.types import Query

STATEMENT = "France capital Paris"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in FAMILIES.items()}


@pytest.fixture(params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    return folders[request.param]


def opened(folder: Path, **settings: Any) -> HuggingFaceBackbone:
    torch.manual_seed(1)
    return HuggingFaceBackbone(str(folder), dtype="float32", rank=4, **settings).eval()


def picture(colour: str, size: tuple[int, int] = (64, 48), mode: str = "RGB") -> Image.Image:
    image = Image.new("RGB", size, "white")
    image.paste(colour, (0, 0, max(1, size[0] // 2), size[1]))
    return image.convert(mode)


def queries() -> list[Query]:
    red, blue = picture("red"), picture("blue", (30, 90))
    return [
        Query("What money do people pay with?", red),
        Query("Which country is shown?"),
        Query("Who borders the country whose flag is shown?", blue),
        Query("Which country?", red),
    ]


def rows(found: tuple[Tensor, Tensor]) -> list[Tensor]:
    """The real hidden states of each state."""
    return [states[mask] for states, mask in zip(*found, strict=True)]


def is_close(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], atol: float = 1e-5) -> None:
    for a, b in zip(rows(one), rows(other), strict=True):
        torch.testing.assert_close(a, b, atol=atol, rtol=0)


def train_a_step(backbone: nn.Module) -> None:
    backbone.train()
    optimizer = torch.optim.SGD([w for w in backbone.parameters() if w.requires_grad], lr=0.5)
    for _ in range(2):  # the first step moves one matrix of the adapter, the second both
        hidden, mask = backbone(queries(), ["", "", STATEMENT, STATEMENT])
        optimizer.zero_grad()
        hidden[mask].pow(3).mean().backward()  # a square would be constant after a norm
        optimizer.step()
    backbone.eval()


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


def base_weights(backbone: HuggingFaceBackbone) -> dict[str, Tensor]:
    return {
        name: weight for name, weight in backbone.adapter.model.named_parameters() if not weight.requires_grad
    }


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


def test_a_state_reads_the_same_alone_in_a_mixed_batch_and_in_any_order(folder: Path) -> None:
    asked, statements = queries(), ["", STATEMENT, STATEMENT * 5, ""]
    backbone = opened(folder, batch=3)
    found = backbone(asked, statements)
    assert found[0].shape == (4, found[1].shape[1], backbone.dim)
    assert found[0].dtype == torch.float32
    turned = backbone(asked[::-1], statements[::-1])
    is_close((turned[0].flip(0), turned[1].flip(0)), found)
    for i, (query, statement) in enumerate(zip(asked, statements, strict=True)):
        alone = backbone([query], [statement])
        is_close(alone, (found[0][i : i + 1], found[1][i : i + 1]))
    empty = backbone([], [])
    assert empty[0].shape == (0, 0, backbone.dim)


def test_picture_question_and_walked_paths_all_count(folder: Path) -> None:
    backbone = opened(folder)
    red, blue = picture("red"), picture("blue")

    def last(text: str, image: Image.Image | None, statement: str) -> Tensor:
        return rows(backbone([Query(text, image)], [statement]))[0][-1]

    states = [
        last("Which country?", red, ""),
        last("Which country?", blue, ""),
        last("Which country?", None, ""),
        last("Which money?", red, ""),
        last("Which country?", red, STATEMENT),
    ]
    for i, one in enumerate(states):
        assert all((one - other).abs().max() > 1e-4 for other in states[:i])


def test_each_picture_goes_through_the_vision_tower_once(folder: Path) -> None:
    backbone = opened(folder)
    vision = backbone.vision
    assert vision is not None
    first = backbone(queries(), [STATEMENT] * 4)
    assert vision.computed == 2
    again = backbone(queries(), [STATEMENT] * 4)  # other objects, the same pixels
    assert vision.computed == 2
    is_close(first, again, 0)
    small = opened(folder, cache_mb=0)
    is_close(small(queries(), [STATEMENT] * 4), first, 0)
    assert small.vision is not None
    assert not small.vision._kept


def test_kept_features_are_those_of_the_model_itself(folder: Path) -> None:
    backbone = opened(folder)
    kept = backbone(queries(), [STATEMENT] * 4)
    backbone.vision = None  # pixels go to the model
    is_close(backbone(queries(), [STATEMENT] * 4), kept)


ODD = {
    "a pixel": picture("red", (1, 1)),
    "a wide strip": picture("red", (900, 2)),
    "a high strip": picture("red", (1, 700)),
    "large": picture("red", (900, 800)),
    "transparent": picture("red", mode="RGBA"),
    "grey": picture("red", mode="L"),
    "a palette": picture("red", mode="P"),
    "cmyk": picture("red", mode="CMYK"),
}


def test_odd_pictures_and_texts_are_read(folder: Path) -> None:
    backbone = opened(folder, max_tokens=40)
    texts = [
        "",
        " ",
        "word " * 5000,
        "\ud800 half a pair",
        "é" * 3000,
        "<image>",
        "<|image_pad|><|im_start|>",
        "\0",
    ]
    asked = [Query(text, image) for text, image in zip(texts, ODD.values(), strict=True)]
    hidden, mask = backbone(asked, [texts[2], "", texts[2], *texts[2:7]])
    assert hidden[mask].isfinite().all()
    assert mask.any(dim=1).all()


def test_control_tokens_in_a_question_are_blank(folder: Path) -> None:
    backbone = opened(folder)
    control = backbone.processor.image_token
    assert backbone.prompts(f"a {control} b", control, True).count(control) == 1
    assert backbone.prompts(f"a{control}b", "", False) == backbone.prompts("a b", "", False)


@pytest.mark.parametrize("name", ["qwen2_5_vl", "idefics3"])
@pytest.mark.parametrize("place", ["chat_template.json", "tokenizer_config.json"])
def test_a_chat_template_is_found_where_folders_keep_it(
    name: str, place: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    copy = Path(broken(folders[name], tmp_path / "copy", "chat_template.jinja", None))
    settings = json.loads((copy / place).read_text()) if (copy / place).is_file() else {}
    settings["chat_template"] = (folders[name] / "chat_template.jinja").read_text()
    (copy / place).write_text(json.dumps(settings))
    expected = opened(folders[name]).prompts("Who?", STATEMENT, True)
    assert opened(copy).prompts("Who?", STATEMENT, True) == expected
    assert "assistant" in expected


def test_a_question_is_cut_last(folders: dict[str, Path]) -> None:
    prompts = opened(folders["qwen2_5_vl"], max_tokens=12).prompts
    assert "Paths" not in prompts("money " * 50, STATEMENT, False)
    both = prompts("Which money?", STATEMENT * 50, False)
    assert "Which money?" in both
    assert "France" in both
    assert len(both) < 300


def test_the_last_positions_bound_the_memory(folders: dict[str, Path]) -> None:
    whole = opened(folders["idefics3"], positions=500)(queries(), [STATEMENT] * 4)
    few = opened(folders["idefics3"], positions=5)(queries(), [STATEMENT] * 4)
    assert few[1].shape == (4, 5)
    for last, every in zip(rows(few), rows(whole), strict=True):
        torch.testing.assert_close(last, every[-5:], atol=1e-6, rtol=0)


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
    is_close(still, backbone(queries(), [STATEMENT] * 4), 0)
    backbone.train()
    assert not torch.equal(still[0], backbone(queries(), [STATEMENT] * 4)[0])


def test_the_model_follows_its_adapter(folders: dict[str, Path]) -> None:
    parent = nn.ModuleDict({"vlm": opened(folders["qwen2_5_vl"])}).double()
    backbone = parent["vlm"]
    assert isinstance(backbone, HuggingFaceBackbone)
    assert backbone.adapter.model.dtype == torch.float64
    inside = {id(weight) for weight in backbone.adapter.model.parameters()}
    assert all(id(weight) in inside for weight in parent.parameters())


@pytest.mark.parametrize("name", ODD)
def test_a_fitted_picture_keeps_its_bounds(name: str) -> None:
    image = fitted(ODD[name], 10_000)
    assert image.mode == "RGB"
    assert image.width * image.height <= 10_000
    assert min(image.size) >= SHORTEST
    assert max(image.size) <= (STRETCH + 1) * min(image.size)
    assert fitted(picture("red", (60, 50)), 10_000).tobytes() == picture("red", (60, 50)).tobytes()


def broken(source: Path, target: Path, name: str, content: bytes | None) -> str:
    shutil.copytree(source, target)
    if content is None:
        (target / name).unlink()
    else:
        (target / name).write_bytes(content)
    return str(target)


def test_what_cannot_be_opened_is_said(folders: dict[str, Path], tmp_path: Path) -> None:
    good = folders["qwen2_5_vl"]
    with pytest.raises(ConfigError, match=r"is no folder, and no id of the hub"):
        HuggingFaceBackbone(str(tmp_path / "nowhere"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no config\.json"):
        HuggingFaceBackbone(str(tmp_path / "empty"))
    for i, (name, content, said) in enumerate(
        [
            ("config.json", b"{", "cannot be opened"),
            ("config.json", json.dumps({"model_type": "bert"}).encode(), "family 'bert'"),
            ("config.json", json.dumps({"model_type": "mine"}).encode(), "cannot be opened"),
            ("model.safetensors", None, "cannot be opened"),
            ("model.safetensors", b"no weights", "cannot be opened"),
            ("tokenizer.json", None, "vlm.model"),
            ("preprocessor_config.json", None, "vlm.model"),
            ("chat_template.jinja", b"{{ nobody.knows }}", "chat template"),
            ("chat_template.jinja", b"{{ messages[0].role }}", "chat template"),
        ]
    ):
        with pytest.raises(ConfigError, match=said):
            HuggingFaceBackbone(broken(good, tmp_path / str(i), name, content))


def test_missing_weights_are_no_noise(folders: dict[str, Path], tmp_path: Path) -> None:
    weights = load_file(folders["idefics3"] / "model.safetensors")
    lost = next(name for name in weights if "text_model.layers.1" in name)
    del weights[lost]
    copy = broken(folders["idefics3"], tmp_path / "copy", "generation_config.json", b"{}")
    save_file(weights, Path(copy) / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match="1 weights are not in its files"):
        HuggingFaceBackbone(copy)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"targets": r"nothing\.here"}, "names no layer"),
        ({"rank": -1}, r"vlm\.rank is -1"),
        ({"max_pixels": 10}, r"vlm\.max_pixels is 10"),
        ({"positions": 0}, "positions 0"),
        ({"quantize": "4bit"}, "pip install bitsandbytes"),
    ],
)
def test_values_out_of_range_name_their_key(
    settings: dict[str, Any], said: str, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=said):
        HuggingFaceBackbone(str(folders["qwen2_5_vl"]), **settings)


def test_a_hub_id_that_cannot_be_reached_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ConfigError, match="the hub, which must be reachable"):
        HuggingFaceBackbone("nobody/no-such-model")
