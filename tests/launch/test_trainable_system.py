"""A system with weights of its own is trained, saved, loaded and tested like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.launch.checkpoint import read_checkpoint
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.parts import PARTS, parts_of
from vispath_lit.launch.predictor import VisPath
from vispath_lit.launch.record import read_metrics
from vispath_lit.launch.train import train

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["system=embedkgqa", "parts=fixed", "logger=none", "system.embedding.dim=8", "system.epochs=2"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    train(load_config("train", [*DATA, *QUICK, f"run_dir={folder}", f"cache_dir={folder / 'cache'}"]))
    return folder


def test_a_run_leaves_metrics_and_a_checkpoint_of_its_own_weights(run: Path) -> None:
    metrics = read_metrics(run)
    assert metrics["system"] == "embedkgqa"
    assert "fixed" not in metrics
    assert metrics["given_start"]["grounding"]["strict"] == 1
    state = read_checkpoint(run / "checkpoints" / "best.ckpt")["state_dict"]
    assert {key.split(".")[0] for key in state} == {"system"}


def test_its_checkpoint_brings_the_system_back(run: Path, tmp_path: Path) -> None:
    overrides = [f"ckpt_path={run / 'checkpoints' / 'best.ckpt'}", f"run_dir={tmp_path / 'a'}"]
    evaluate_run(load_config("eval", overrides), overrides)
    again = read_metrics(tmp_path / "a")
    assert again["system"] == "embedkgqa"
    for table in ("overall", "grounding"):
        assert again[table] == read_metrics(run)[table]
    vispath = VisPath.from_checkpoint(run / "checkpoints" / "best.ckpt")
    assert vispath.system.name == "embedkgqa"
    answer = vispath.ask("What is the star of the planet orbited by the moon?", start="phobos")
    assert answer.id is not None
    assert answer.path is None


def test_another_system_cannot_use_its_weights(run: Path, tmp_path: Path) -> None:
    checkpoint = f"ckpt_path={run / 'checkpoints' / 'best.ckpt'}"
    for wrong in (["system=vispath", "parts/texts=exact"], ["system=embedkgqa", "system.embedding.dim=9"]):
        overrides = [checkpoint, f"run_dir={tmp_path / 'b'}", *wrong]
        with pytest.raises(CheckpointError, match=r"no configured part is a learned one|does not fit"):
            evaluate_run(load_config("eval", overrides), overrides)
    overrides = [*DATA, "system=embedkgqa", f"run_dir={tmp_path / 'c'}"]
    with pytest.raises(CheckpointError, match=r"train.py system=embedkgqa"):
        evaluate_run(load_config("eval", overrides), overrides)
    with pytest.raises(ConfigError, match="fit=false"):
        train(load_config("train", [*DATA, *QUICK, f"run_dir={tmp_path / 'd'}", "fit=false"]))


def test_a_system_gets_the_parts_that_it_asks_for() -> None:
    full = load_config("train", [*DATA, "run_dir=x"])
    assert parts_of(full.system, full.parts) == set(PARTS)
    rival = load_config("train", [*DATA, "run_dir=x", "system=embedkgqa"])
    assert parts_of(rival.system, rival.parts) == {"analyzer", "grounder"}
