"""Tiny vision-language models as backbones, and what their tests ask of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from tiny_vlms import FAMILIES
from torch import Tensor, nn

from vispath_lit.models.backbones.hf import HuggingFaceBackbone
from vispath_lit.types import Query

STATEMENT = "France capital Paris"


def written(factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each family."""
    return {name: make(factory.mktemp(name)) for name, make in FAMILIES.items()}


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


def is_close(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor], atol: float = 1e-5) -> bool:
    """Whether each state has the same number of hidden states in both, with the same values."""
    return all(
        a.shape == b.shape and torch.allclose(a, b, atol=atol, rtol=0)
        for a, b in zip(rows(one), rows(other), strict=True)
    )


def train_a_step(backbone: nn.Module) -> None:
    backbone.train()
    optimizer = torch.optim.SGD([w for w in backbone.parameters() if w.requires_grad], lr=0.5)
    for _ in range(2):  # the first step moves one matrix of the adapter, the second both
        hidden, mask = backbone(queries(), ["", "", STATEMENT, STATEMENT])
        optimizer.zero_grad()
        hidden[mask].pow(3).mean().backward()  # a square would be constant after a norm
        optimizer.step()
    backbone.eval()


def base_weights(backbone: HuggingFaceBackbone) -> dict[str, Tensor]:
    return {
        name: weight for name, weight in backbone.adapter.model.named_parameters() if not weight.requires_grad
    }


def broken(source: Path, target: Path, name: str, content: bytes | None) -> str:
    shutil.copytree(source, target)
    if content is None:
        (target / name).unlink()
    else:
        (target / name).write_bytes(content)
    return str(target)


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
