"""Configs compose the same outside a Hydra job, and a checkpoint decides its system and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from vispath_lit.errors import ConfigError
from vispath_lit.launch.config import cache_dir, load_config, plain, with_checkpoint


@pytest.fixture(scope="module")
def saved() -> dict[str, Any]:
    """What a training run with its own ideas writes into its checkpoint."""
    changes = ["parts.search.m3=7", "parts/texts=exact", "system.batch_size=5", "run_dir=there", "seed=9"]
    changes += ["data.limit=3", "data.split=val", "data.source.workers=2"]
    return plain(load_config("train", changes))


@pytest.mark.parametrize("override", ["seeed=1", "parts/texts=exakt", "data=nothing", "=", "seed"])
def test_an_override_that_names_nothing_is_quoted(override: str) -> None:
    with pytest.raises(ConfigError, match=override):
        load_config("train", [override])


def test_configs_compose_again_and_again() -> None:
    assert load_config("eval", ["seed=3"]).seed == 3
    assert load_config("eval").seed == 0
    assert load_config("train", ["parts/search@fixed.search=paper"]).fixed.search.d_max == 3


def test_a_checkpoint_brings_its_system_and_leaves_the_run_its_own(saved: dict[str, Any]) -> None:
    config = load_config("eval", ["run_dir=here"])
    merged = with_checkpoint(config, saved, ["run_dir=here"])
    for key in ("text_encoder", "image_encoder", "parts"):
        assert OmegaConf.to_container(merged[key]) == saved[key]
    assert merged.data.source.workers == 2
    assert (merged.data.split, merged.data.limit, merged.data.train_limit) == ("test", None, None)
    assert merged.parts.search.m3 == 7
    assert merged.parts.intent._target_.endswith("LearnedIntent")
    assert (merged.run_dir, merged.seed, merged.system.batch_size) == ("here", 0, config.system.batch_size)
    assert config.parts.search.m3 == 3, "the run's config itself is left alone"


def test_what_the_user_names_wins_over_the_checkpoint(saved: dict[str, Any]) -> None:
    overrides = ["parts/texts=composed", "parts.search.m2=11", "data.split=val", "run_dir=here"]
    merged = with_checkpoint(load_config("eval", overrides), saved, overrides)
    assert merged.parts.texts._target_.endswith("Composed")
    assert merged.parts.search.m2 == 11
    assert merged.parts.search.m3 == 7, "what was not named stays the checkpoint's"
    assert merged.data.split == "val"


def test_a_whole_choice_of_the_user_wins(saved: dict[str, Any]) -> None:
    overrides = ["parts=fixed", "run_dir=here"]
    merged = with_checkpoint(load_config("eval", overrides), saved, overrides)
    assert merged.parts.intent._target_.endswith("QuestionIntent")
    assert merged.parts.search.m3 == 3


def test_the_cache_is_where_the_user_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(tmp_path))
    assert load_config("eval").cache_dir == cache_dir() == str(tmp_path)
    monkeypatch.delenv("VISPATH_CACHE")
    assert Path(cache_dir()).name == "vispath-lit"
