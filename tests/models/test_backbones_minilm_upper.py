"""Frozen lower layers and untrained upper ones are MiniLM itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.minilm_upper import MiniLMUpper
from vispath_lit.types import Query

QUESTIONS = ["Which money?", "What money do people pay with in the country whose flag is shown?", "", "Who?"]


class NoPictures:
    dim, fingerprint = 1, "none"

    def encode(self, images: Sequence[object]) -> torch.Tensor:
        raise AssertionError("it reads words alone")


def made(**settings: object) -> MiniLMUpper:
    torch.manual_seed(0)
    return MiniLMUpper(NoPictures(), **{"dtype": "float32", **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize("layers", [1, 5])
def test_it_begins_as_the_encoder_itself(layers: int) -> None:
    states, mask = made(layers=layers)([Query(text) for text in QUESTIONS], [""] * len(QUESTIONS))
    whole, whole_mask = MiniLM(None, dtype="float32").tokens(QUESTIONS)
    assert torch.equal(mask, whole_mask)
    # The lower layers' states are kept in half precision, and computed in the precision that is asked for.
    difference = (states - whole)[mask]
    assert difference.norm() < 0.002 * whole[mask].norm()


def test_batches_do_not_change_what_is_read() -> None:
    queries, none = [Query(text) for text in QUESTIONS], [""] * len(QUESTIONS)
    whole, mask = made()(queries, none)
    for batch in (1, 3):
        states, batch_mask = made(batch=batch)(queries, none)
        assert torch.equal(batch_mask, mask)
        torch.testing.assert_close(states[mask], whole[mask], rtol=1e-4, atol=1e-4)
    nothing, no_mask = made()([], [])
    assert nothing.shape[0] == no_mask.shape[0] == 0


def test_a_step_moves_the_adapter_of_the_upper_layers_alone(tmp_path: Path) -> None:
    backbone = made(cache_dir=tmp_path, layers=2)
    queries, none = [Query(text) for text in QUESTIONS], [""] * len(QUESTIONS)
    before = backbone.lower.tokens(QUESTIONS)[0].clone()
    optimizer = torch.optim.SGD(backbone.parameters(), lr=0.1)
    first, mask = backbone(queries, none)
    for _ in range(2):
        optimizer.zero_grad()
        backbone(queries, none)[0][mask].pow(3).mean().backward()
        optimizer.step()
    names = {name for name, _ in backbone.named_parameters()}
    assert names
    assert all("lora" in name for name in names)
    assert not torch.allclose(backbone(queries, none)[0][mask], first[mask], atol=1e-4)
    assert torch.equal(backbone.lower.tokens(QUESTIONS)[0], before)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"vlm\.batch is 0"):
        made(batch=0)


@pytest.mark.parametrize("layers", [0, 6, 7])
def test_layers_it_has_not_are_refused(layers: int) -> None:
    with pytest.raises(ConfigError, match=rf"vlm\.layers is {layers}; expected 1 to 5, as the encoder has 6"):
        made(layers=layers)
