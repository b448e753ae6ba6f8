"""The packaged backbone is MiniLM itself until it sees a picture or is trained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from torch import Tensor

from vispath_lit.encoders.efficientnet import EfficientNetLite
from vispath_lit.encoders.minilm import MiniLM, load_minilm
from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.minilm_vision import MiniLMVision
from vispath_lit.models.backbones.none import NoBackbone
from vispath_lit.models.backbones.states import batches, readable
from vispath_lit.types import Query

QUESTIONS = ["Which money?", "What money do people pay with in the country whose flag is shown?", "", "Who?"]
STATEMENT = "France capital Paris"


@pytest.fixture(scope="module")
def image_encoder() -> EfficientNetLite:
    return EfficientNetLite(None, size=64, dtype="float32")


@pytest.fixture(scope="module")
def untrained(image_encoder: EfficientNetLite) -> MiniLMVision:
    return made(image_encoder)


def made(image_encoder: EfficientNetLite, **settings: Any) -> MiniLMVision:
    torch.manual_seed(0)
    return MiniLMVision(image_encoder, **{"dtype": "float32", "rank": 4, **settings}).eval()


def picture(colour: str, size: tuple[int, int] = (40, 30), mode: str = "RGB") -> Image.Image:
    image = Image.new("RGB", size, "white")
    image.paste(colour, (0, 0, max(1, size[0] // 2), size[1]))
    return image.convert(mode)


def rows(found: tuple[Tensor, Tensor]) -> list[Tensor]:
    """The real hidden states of each state."""
    return [states[mask] for states, mask in zip(*found, strict=True)]


def is_close(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], atol: float = 1e-5) -> bool:
    """Whether each state has the same number of hidden states in both, with the same values."""
    return all(
        a.shape == b.shape and torch.allclose(a, b, atol=atol, rtol=0)
        for a, b in zip(rows(one), rows(other), strict=True)
    )


def mixed() -> tuple[list[Query], list[str]]:
    red, blue = picture("red"), picture("blue")
    images = [red, None, blue, red]
    asked = [Query(text, image) for text, image in zip(QUESTIONS, images, strict=True)]
    return asked, ["", STATEMENT, STATEMENT * 10, STATEMENT]


def train_a_step(backbone: MiniLMVision) -> None:
    backbone.train()
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
    for _ in range(2):
        hidden, mask = backbone(*mixed())
        optimizer.zero_grad()
        hidden[mask].pow(3).mean().backward()
        optimizer.step()
    backbone.eval()


def test_without_a_picture_the_untrained_backbone_is_minilm(untrained: MiniLMVision) -> None:
    found = untrained([Query(text) for text in QUESTIONS], [""] * len(QUESTIONS))
    hidden, mask = MiniLM(None, dtype="float32").tokens(QUESTIONS)
    assert is_close(found, (hidden, mask), 5e-3)  # tokens are kept in half precision
    tokenizer, model = load_minilm()
    for text, states in zip(QUESTIONS, rows(found), strict=True):
        own = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        torch.testing.assert_close(states, own, atol=1e-5, rtol=0)
    pair = model(**tokenizer(f"{QUESTIONS[1]}[SEP]{STATEMENT}", return_tensors="pt")).last_hidden_state[0]
    both = rows(untrained([Query(QUESTIONS[1])], [STATEMENT]))[0]
    torch.testing.assert_close(both, pair, atol=1e-5, rtol=0)


def test_a_state_reads_the_same_alone_in_a_mixed_batch_and_in_any_order(untrained: MiniLMVision) -> None:
    asked, statements = mixed()
    found = untrained(asked, statements)
    assert found[0].shape == (*found[1].shape, untrained.dim)
    assert found[0].dtype == torch.float32
    turned = untrained(asked[::-1], statements[::-1])
    assert is_close((turned[0].flip(0), turned[1].flip(0)), found)
    for i, (query, statement) in enumerate(zip(asked, statements, strict=True)):
        assert is_close(untrained([query], [statement]), (found[0][i : i + 1], found[1][i : i + 1]))
    assert untrained([], [])[0].shape == (0, 0, untrained.dim)


def test_small_batches_give_the_same_values(image_encoder: EfficientNetLite, untrained: MiniLMVision) -> None:
    small = made(image_encoder, batch=1)
    small.load_state_dict(untrained.state_dict())
    assert is_close(small(*mixed()), untrained(*mixed()))


def test_a_picture_adds_its_cells_and_their_mean(untrained: MiniLMVision) -> None:
    text, red, blue = (
        rows(untrained([Query(QUESTIONS[1], image)], [""]))[0]
        for image in (None, picture("red"), picture("blue"))
    )
    assert len(red) == len(text) + untrained.cells.grid**2 + 1
    assert (red[: len(text)] - text).abs().max() > 1e-3
    assert (red - blue).abs().max() > 1e-3


def test_equal_grids_share_the_run_s_features(image_encoder: EfficientNetLite) -> None:
    assert made(image_encoder).cells.encoder is image_encoder
    fine = made(image_encoder, grid=4)
    hidden, mask = fine(*mixed())
    assert fine.cells.encoder is not image_encoder
    assert int(mask[0].sum()) == len(rows(made(image_encoder)(*mixed()))[0]) + 12
    assert hidden[mask].isfinite().all()


def test_cells_lie_row_by_row(image_encoder: EfficientNetLite, untrained: MiniLMVision) -> None:
    cells = untrained.cells
    maps = image_encoder.encode([picture("red", (64, 64))]).reshape(-1, 2, 2)
    (found,) = cells([picture("red", (64, 64))])
    for i in range(2):
        for j in range(2):
            torch.testing.assert_close(found[2 * i + j], 2 * maps[:, i, j])
    torch.testing.assert_close(found[4], found[:4].mean(dim=0))


def test_trained_weights_alone_are_saved_and_reload_to_the_same_values(
    image_encoder: EfficientNetLite, untrained: MiniLMVision, tmp_path: Path
) -> None:
    backbone = made(image_encoder)
    train_a_step(backbone)
    after = backbone(*mixed())
    assert any(
        (a - b).abs().max() > 1e-3 for a, b in zip(rows(after), rows(untrained(*mixed())), strict=True)
    )
    assert set(backbone.state_dict()) == {name for name, weight in backbone.named_parameters()}
    assert sum(weight.numel() for weight in backbone.state_dict().values()) < 600_000
    save_file(backbone.state_dict(), tmp_path / "adapter.safetensors")
    fresh = made(image_encoder)
    fresh.load_state_dict(load_file(tmp_path / "adapter.safetensors"), strict=True)
    for one, other in zip(fresh(*mixed()), after, strict=True):
        assert torch.equal(one, other)


def test_gradients_reach_adapter_and_projection_alone(image_encoder: EfficientNetLite) -> None:
    backbone = made(image_encoder).train()
    hidden, mask = backbone(*mixed())
    hidden[mask].pow(3).sum().backward()
    inside = dict(backbone.adapter.model.named_parameters())
    assert all(weight.grad is None for weight in inside.values() if not weight.requires_grad)
    named = dict(backbone.named_parameters())
    assert sum("lora_" in name for name in named) == 2 * 2 * 6  # two matrices, query and value, six layers
    for name, weight in named.items():
        assert weight.grad is not None
        if "lora_A" not in name:
            assert weight.grad.abs().max() > 0


def test_every_weight_takes_part_in_a_step_without_pictures(image_encoder: EfficientNetLite) -> None:
    backbone = made(image_encoder).train()
    hidden, _ = backbone([Query(QUESTIONS[1])], [STATEMENT])
    hidden.sum().backward()
    assert all(weight.grad is not None for weight in backbone.parameters())


def test_odd_pictures_and_texts_are_read(untrained: MiniLMVision) -> None:
    images = [picture("red", (1, 1)), picture("red", (900, 2)), picture("red", (1, 700))]
    images += [picture("red", mode=mode) for mode in ("RGBA", "L", "P", "CMYK")]
    texts = ["", " ", "word " * 5000, "\ud800 half a pair", "é" * 3000, "[SEP] [CLS] [PAD]", "\0"]
    asked = [Query(text, image) for text, image in zip(texts, images, strict=True)]
    hidden, mask = untrained(asked, texts[::-1])
    assert hidden[mask].isfinite().all()
    assert int(mask.sum(dim=1).max()) == untrained.max_tokens + 5
    assert mask.any(dim=1).all()


def test_bfloat16_stays_near(image_encoder: EfficientNetLite, untrained: MiniLMVision) -> None:
    rounded = made(image_encoder, dtype="bfloat16")
    rounded.load_state_dict(untrained.state_dict())
    found = rounded(*mixed())
    assert found[0].dtype == torch.float32
    for one, other in zip(rows(found), rows(untrained(*mixed())), strict=True):
        assert torch.cosine_similarity(one, other, dim=-1).min() > 0.99


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"max_tokens": 3}, r"vlm\.max_tokens 3"),
        ({"max_tokens": 512}, "from 4 to 507"),
        ({"batch": 0}, r"vlm\.batch is 0"),
        ({"rank": -1}, r"vlm\.rank is -1"),
        ({"folder": "/nowhere"}, "no config.json"),
    ],
)
def test_values_out_of_range_name_their_key(
    settings: dict[str, Any], said: str, image_encoder: EfficientNetLite
) -> None:
    with pytest.raises(ConfigError, match=said):
        made(image_encoder, **settings)


def test_no_backbone_has_nothing_to_say() -> None:
    hidden, mask = NoBackbone()([Query("Who?")] * 3, [""] * 3)
    assert hidden.shape == (3, 0, NoBackbone.dim)
    assert mask.shape == (3, 0)


def test_batches_hold_each_state_once_and_go_by_length() -> None:
    lengths = [3, 9, 1, 9, 5]
    found = batches(lengths, 2)
    assert found == [[1, 3], [4, 0], [2]]
    assert batches([], 2) == []
    assert readable("a\udfff" + "b" * 100_000).startswith("a?b")


def test_rank_0_trains_what_maps_pictures_and_no_backbone(
    image_encoder: EfficientNetLite, untrained: MiniLMVision
) -> None:
    plain = made(image_encoder, rank=0)
    assert {name.split(".")[0] for name, _ in plain.named_parameters()} == {"project"}
    plain.load_state_dict(
        {key: value for key, value in untrained.state_dict().items() if key in plain.state_dict()}
    )
    assert is_close(plain(*mixed()), untrained(*mixed()))  # an untrained adapter is none
    words = [Query(text) for text in QUESTIONS], [STATEMENT] * len(QUESTIONS)
    before, seen = rows(plain(*words)), rows(plain(*mixed()))
    train_a_step(plain)
    for one, other in zip(before, rows(plain(*words)), strict=True):
        assert torch.equal(one, other)
    assert not torch.allclose(seen[0], rows(plain(*mixed()))[0])


def test_rounded_weights_are_those_that_autocast_makes(image_encoder: EfficientNetLite) -> None:
    rounded = made(image_encoder, dtype="bfloat16")
    model = rounded.adapter.model
    kinds = {name: weight.dtype for name, weight in model.named_parameters()}
    assert {kind for name, kind in kinds.items() if "lora" in name or "LayerNorm" in name} == {torch.float32}
    assert {kind for name, kind in kinds.items() if "base_layer" in name or "dense" in name} == {
        torch.bfloat16
    }
    found = rounded(*mixed())
    _, whole = load_minilm()
    full = dict(whole.named_parameters())
    for name, weight in model.named_parameters():
        if weight.dtype == torch.bfloat16:
            weight.data = full[name.replace(".base_layer", "")].data
    again = rounded(*mixed())
    assert torch.equal(found[0], again[0])
    assert torch.equal(found[1], again[1])
