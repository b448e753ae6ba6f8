"""What becomes of a picture's reader that is taught anew after the walk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from twin_planets import with_twins

from vispath_lit.errors import ConfigError
from vispath_lit.launch import pictures
from vispath_lit.launch.checkpoint import read_checkpoint
from vispath_lit.launch.config import load_config
from vispath_lit.launch.keeping import best_of_walk
from vispath_lit.launch.train import train
from vispath_lit.launch.validation import Validation

READER = "parts.intent.picture."
TOLD = "a closer look at 2 questions"


@pytest.fixture(scope="module")
def planets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_twins(tmp_path_factory.mktemp("twins"))


def run(planets: Path, folder: Path, *overrides: str) -> tuple[float | None, dict[str, Any]]:
    """Trains for a pass; gives the score and the weights."""
    words = [
        "data=custom",
        f"data.graph={planets / 'graph'}",
        f"data.questions={planets / 'questions.jsonl'}",
    ]
    words += ["parts/texts=exact", "compare_fixed=false", "logger=none", "trainer.max_epochs=1"]
    words += ["training.closer_look.batch=2", "parts.intent.image_tokens=2", f"run_dir={folder}"]
    score = train(load_config("train", [*words, f"cache_dir={planets / 'cache'}", *overrides]))
    return score, read_checkpoint(folder / "checkpoints" / "best.ckpt")["state_dict"]


def changed(one: dict[str, Any], two: dict[str, Any]) -> set[str]:
    return {name for name in one if not torch.equal(one[name], two[name])}


@pytest.mark.parametrize(
    ("after", "kept"),
    [
        (pictures.ValScore(0.6, 0.5), True),
        (pictures.ValScore(0.5, 0.5), True),
        (pictures.ValScore(0.4, 0.9), False),
        (pictures.ValScore(0.6, 0.4), False),
    ],
)
def test_a_reader_that_val_loses_by_is_not_kept(
    after: pictures.ValScore,
    kept: bool,
    planets: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scores = iter([pictures.ValScore(0.5, 0.5), after])

    def scored(search: Validation, metric: str) -> pictures.ValScore:
        search()
        return next(scores)

    monkeypatch.setattr(pictures, "_score", scored)
    score, weights = run(planets, tmp_path / "run")
    told = capsys.readouterr().err
    assert TOLD in told
    assert ("so it is undone" in told) == (not kept)
    folder = tmp_path / "run" / "checkpoints"
    walk = read_checkpoint(best_of_walk(folder))["state_dict"]
    moved = {name for name in changed(weights, walk) if not name.startswith("parts.selector.")}
    assert bool(moved) == kept
    assert all(name.startswith(READER) for name in moved)
    assert (folder / "walk.ckpt").is_file() == kept
    assert (score == after.all) == kept


def test_val_is_asked_with_both_readers(
    planets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(planets, tmp_path / "run")
    assert TOLD in capsys.readouterr().err


@pytest.mark.parametrize(
    "without",
    ["training.closer_look.passes=0", "training.closer_look.batch=3", "parts/edge_scorer=fixed"],
)
def test_where_there_is_nothing_to_be_learned_the_walk_s_reader_stays(
    without: str, planets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(planets, tmp_path / "run", without)
    assert TOLD not in capsys.readouterr().err
    assert not (tmp_path / "run" / "checkpoints" / "walk.ckpt").exists()


def test_a_run_that_goes_on_begins_from_the_best_of_its_walk(
    planets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = pictures._score

    def all_right(search: Validation, metric: str) -> pictures.ValScore:
        scored(search, metric)
        return pictures.ValScore(1.0, 1.0)

    monkeypatch.setattr(pictures, "_score", all_right)
    run(planets, tmp_path / "one")
    walk = tmp_path / "one" / "checkpoints" / "walk.ckpt"
    assert walk.is_file()
    _, again = run(
        planets,
        tmp_path / "two",
        f"ckpt_path={tmp_path / 'one' / 'checkpoints' / 'last.ckpt'}",
        "training.closer_look.passes=0",
    )
    before = read_checkpoint(walk)["state_dict"]
    assert not {name for name in changed(again, before) if not name.startswith("parts.selector.")}


def test_training_without_a_validation_is_told(planets: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ended before its first validation"):
        run(planets, tmp_path / "run", "+trainer.max_steps=1", "training.batch_size=2")


def test_settings_that_cannot_be_are_told_before_training(
    planets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"batch is 0"):
        run(planets, tmp_path / "run", "training.closer_look.batch=0", "parts.intent.image_tokens=0")
    assert not (tmp_path / "run" / "checkpoints").exists()
