"""Two real processes on the ten-entity example: they share the questions and measure what one measures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from twin_planets import with_twins

from vispath_lit.evaluation.summary import without_cost
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.record import read_metrics

ROOT = Path(__file__).parents[2]
TRAIN = ["data=custom", "parts/texts=exact", "system.batch_size=1", "parts.intent.image_tokens=2"]
TRAIN += ["parts/texts@fixed.texts=exact", "compare_fixed=false", "logger=none", "trainer.max_epochs=1"]
TRAIN += ["training.batch_size=2", "trainer.accelerator=cpu", "trainer.devices=2", "trainer.strategy=ddp"]
TRAIN += ["training.closer_look.batch=2"]  # by the first process; both answer with its reader
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]


def python(folder: Path, cache: Path, *words: str) -> str:
    """Runs a command of the project in `folder`; gives what it printed."""
    environment = os.environ | {"VISPATH_CACHE": str(cache), "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def planets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_twins(tmp_path_factory.mktemp("planets"))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, cache: Path, planets: Path) -> Path:
    """A run whose second process Lightning starts."""
    folder = tmp_path_factory.mktemp("trained")
    data = [f"data.graph={planets / 'graph'}", f"data.questions={planets / 'questions.jsonl'}"]
    told = python(folder, cache, str(ROOT / "train.py"), *TRAIN, *data, f"run_dir={folder / 'run'}")
    assert "a closer look at 2 questions" in told
    return folder / "run"


@pytest.fixture(scope="module")
def alone(trained: Path, tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """Its checkpoint, tested by one process."""
    folder = tmp_path_factory.mktemp("alone")
    overrides = [f"ckpt_path={trained / 'checkpoints' / 'best.ckpt'}", "system.batch_size=1"]
    overrides += [f"cache_dir={cache}", f"run_dir={folder}"]
    evaluate_run(load_config("eval", overrides), overrides)
    return folder


def asked(file: Path) -> list[str]:
    return [json.loads(line)["id"] for line in file.read_text(encoding="utf8").splitlines()]


def test_a_run_of_two_processes_tests_as_one_does(trained: Path, alone: Path) -> None:
    two, one = without_cost(read_metrics(trained)), without_cost(read_metrics(alone))
    assert two == one
    assert read_metrics(trained)["overall"]["questions"] == 4


def test_torchrun_tests_as_one_process_does(trained: Path, alone: Path, tmp_path: Path, cache: Path) -> None:
    words = [f"ckpt_path={trained / 'checkpoints' / 'best.ckpt'}", "system.batch_size=1"]
    printed = python(tmp_path, cache, *TORCHRUN, str(ROOT / "eval.py"), *words)
    (run,) = (tmp_path / "outputs" / "eval").iterdir()  # both processes name it alike
    assert without_cost(read_metrics(run)) == without_cost(read_metrics(alone))
    assert (tmp_path / "outputs" / "latest").resolve() == run
    for file in alone.glob("predictions*.jsonl"):
        assert asked(run / file.name) == asked(file), file.name
    assert printed.count("run folder:") == 1


def test_every_question_is_asked_once(trained: Path, planets: Path) -> None:
    lines = (planets / "questions.jsonl").read_text(encoding="utf8").splitlines()
    split = {one["id"]: one["split"] for one in map(json.loads, lines)}
    for name, of in (("validation", "val"), ("predictions", "test"), ("predictions.given_start", "test")):
        found = Counter(asked(trained / f"{name}.jsonl"))
        assert found == Counter(id for id, its in split.items() if its == of), name
