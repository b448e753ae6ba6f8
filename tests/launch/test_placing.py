from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from vispath_lit.errors import ConfigError
from vispath_lit.launch.placing import chosen_device, place


def parts() -> dict[str, Any]:
    names = ("intent", "grounder", "selector", "vlm")
    return {**{name: nn.Linear(2, 2) for name in names}, "texts": object()}


def test_parts_go_where_they_answer_and_some_stay_with_the_processor() -> None:
    placed = parts()
    place(placed, "meta")
    where = {name: part.weight.device.type for name, part in placed.items() if isinstance(part, nn.Module)}
    assert where == {"intent": "meta", "grounder": "cpu", "selector": "cpu", "vlm": "meta"}


@pytest.mark.parametrize("there", [True, False])
def test_the_gpu_is_taken_where_there_is_one(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert chosen_device("auto").type == ("cuda" if there else "cpu")


@pytest.mark.parametrize("device", ["warp", "cuda:999", "cpu:x"])
def test_a_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(ConfigError, match=f"device is '{device}'"):
        place(parts(), device)
