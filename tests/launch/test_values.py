"""A user's value is refused by key, before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest
import pytorch_lightning as pl
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.launch.config import load_config
from vispath_lit.launch.mistakes import mended
from vispath_lit.launch.parts import make, section
from vispath_lit.launch.record import RunRecord
from vispath_lit.launch.values import RULES, check_run, check_values
from vispath_lit.search.settings import SearchSettings


@pytest.mark.parametrize(
    "override",
    [
        "seed=-1",
        "seed=abc",
        "seed=1.5",
        "seed=null",
        "seed=4294967296",
        "threads=0",
        "threads=abc",
        "data.limit=-3",
        "data.limit=1.5",
        "data.limit=abc",
        "data.train_limit=0",
        "data.split=null",
        "cache_dir=null",
        "run_dir=''",
        "ckpt_path=5",
        "fit=maybe",
        "transfer=1",
        "trainer.max_epochs=abc",
        "trainer.max_epochs=-2",
        "training.batch_size=0",
        "training.val_questions=0",
        "training.on_error=ignore",
        "training.best_by=loss",
    ],
)
def test_a_value_of_a_run_is_refused_by_its_key(override: str) -> None:
    key = override.split("=")[0]
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        check_run(load_config("train", ["run_dir=x", override]))


@pytest.mark.parametrize("override", ["given=null", "given=nothing"])
def test_given_is_a_list(override: str) -> None:
    with pytest.raises(ConfigError, match="given"):
        check_run(load_config("eval", ["run_dir=x", override]))


def test_the_defaults_are_allowed_and_every_rule_has_a_key() -> None:
    ruled: set[str] = set()
    for name in ("train", "eval"):
        config = load_config(name, ["run_dir=x"])
        check_run(config)
        ruled |= {key for key in RULES if OmegaConf.select(config, key, default=config) is not config}
    assert ruled == set(RULES)  # a rule whose key no config has would check nothing


def test_a_value_that_does_not_resolve_names_its_key() -> None:
    with pytest.raises(ConfigError, match="cache_dir"):
        check_run(load_config("eval", ["run_dir=x", "cache_dir=${oops}"]))


def test_an_override_of_no_choice_is_a_config_error() -> None:
    for override in ("parts=null", "seeed=1", "parts=nope", "data.limit=[1"):
        with pytest.raises(ConfigError, match="overrides"):
            load_config("eval", [override])


@dataclass
class Part:
    many: int = 1
    share: float = 0.5
    kind: Literal["a", "b"] = "a"
    limit: int | None = None
    folder: Path | str | None = None


@pytest.mark.parametrize(
    "values",
    [
        {"many": "abc"},
        {"many": True},
        {"many": None},
        {"many": 1.0},
        {"share": "half"},
        {"share": False},
        {"kind": "c"},
        {"limit": "all"},
        {"folder": 5},
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_its_name(values: dict[str, object]) -> None:
    (key,) = values
    with pytest.raises(ConfigError, match=f"{key} is"):
        check_values(Part, values, "part")


def test_values_of_the_right_type_reach_the_part() -> None:
    values = {"many": 3, "share": 1, "kind": "b", "limit": None, "folder": "x"}
    assert make({"_target_": f"{__name__}.Part", **values}, {}) == Part(3, 1, "b", None, "x")


def test_the_default_trainer_and_search_are_what_the_config_says() -> None:
    config = load_config("train", ["run_dir=x"])
    trainer = make(section(config.trainer), {})
    assert isinstance(trainer, pl.Trainer)
    assert trainer.max_epochs == config.trainer.max_epochs
    values = section(config.parts.search)
    assert values.pop("_target_").endswith(".SearchSettings")
    assert asdict(make(section(config.parts.search), {})) == {**asdict(SearchSettings()), **values}


def test_a_part_checks_its_values() -> None:
    config = load_config("eval", ["run_dir=x", "parts.search.delta=null"])
    with pytest.raises(ConfigError, match="delta is None"):
        make(section(config.parts.search), {})


def test_a_section_must_be_a_mapping() -> None:
    config = load_config("eval", ["run_dir=x", "data.source=null"])
    with pytest.raises(ConfigError, match="_target_"):
        section(config.data.source)


def test_a_run_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match="run_dir"):
            RunRecord(folder)


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (DataError("line 3: [bold]"), 1, "line 3: [bold]"),
        (VisPathError("\x1b[31mred\x07"), 1, "red"),
        (OSError(28, "No space left on device", "out.jsonl"), 1, "out.jsonl: No space left"),
        (HydraException("Could not override 'seeed'"), 1, "seeed"),
        (OmegaConfBaseException("no such key"), 1, "no such key"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_a_user_can_mend_is_one_line(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended, mended():
        raise error
    assert ended.value.code == code
    shown = capsys.readouterr().err
    assert said in shown
    assert "Traceback" not in shown
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_an_error_of_our_own_keeps_its_traceback(kind: Callable[[], Exception]) -> None:
    with pytest.raises((ValueError, RuntimeError)), mended():
        raise kind()


def test_a_foreign_metrics_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"system": "x", "overall": 5}')
    for options in ([], ["--markdown"]):
        found = CliRunner().invoke(app, ["report", str(tmp_path), *options])
        assert isinstance(found.exception, DataError)
        assert "metrics.json" in str(found.exception)


def test_where_answers_cannot_be_written_is_said_first(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none" / "out.jsonl"):
        found = CliRunner().invoke(app, ["predict", str(tmp_path / "missing.jsonl"), str(place)])
        assert isinstance(found.exception, DataError)
        assert "cannot be written" in str(found.exception)
