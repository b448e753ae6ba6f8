"""Tiny checkpoints of real families go through the code that opens the large ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from opened_vlms import ODD, STATEMENT, is_close, opened, picture, queries, rows, written
from PIL import Image
from tiny_vlms import FAMILIES
from torch import Tensor

from vispath_lit.models.backbones.hf_prompts import SHORTEST, STRETCH, fitted
from vispath_lit.types import Query


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return written(tmp_path_factory)


@pytest.fixture(params=sorted(FAMILIES))
def folder(request: pytest.FixtureRequest, folders: dict[str, Path]) -> Path:
    return folders[request.param]


def test_a_state_reads_the_same_alone_in_a_mixed_batch_and_in_any_order(folder: Path) -> None:
    asked, statements = queries(), ["", STATEMENT, STATEMENT * 5, ""]
    backbone = opened(folder, batch=3)
    found = backbone(asked, statements)
    assert found[0].shape == (4, found[1].shape[1], backbone.dim)
    assert found[0].dtype == torch.float32
    turned = backbone(asked[::-1], statements[::-1])
    assert is_close((turned[0].flip(0), turned[1].flip(0)), found)
    for i, (query, statement) in enumerate(zip(asked, statements, strict=True)):
        alone = backbone([query], [statement])
        assert is_close(alone, (found[0][i : i + 1], found[1][i : i + 1]))
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
    assert is_close(first, again, 0)
    small = opened(folder, cache_mb=0)
    assert is_close(small(queries(), [STATEMENT] * 4), first, 0)
    assert small.vision is not None
    assert not small.vision._kept


def test_kept_features_are_those_of_the_model_itself(folder: Path) -> None:
    backbone = opened(folder)
    kept = backbone(queries(), [STATEMENT] * 4)
    backbone.vision = None  # pixels go to the model
    assert is_close(backbone(queries(), [STATEMENT] * 4), kept)


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


@pytest.mark.parametrize("name", ODD)
def test_a_fitted_picture_keeps_its_bounds(name: str) -> None:
    image = fitted(ODD[name], 10_000)
    assert image.mode == "RGB"
    assert image.width * image.height <= 10_000
    assert min(image.size) >= SHORTEST
    assert max(image.size) <= (STRETCH + 1) * min(image.size)
    assert fitted(picture("red", (60, 50)), 10_000).tobytes() == picture("red", (60, 50)).tobytes()
