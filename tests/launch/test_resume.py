"""A run that is killed in the middle of an epoch and taken up again ends at an undisturbed run's bits."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from twin_planets import with_twins

from vispath_lit.errors import CheckpointError
from vispath_lit.evaluation.summary import without_cost
from vispath_lit.launch.checkpoint import read_checkpoint
from vispath_lit.launch.config import load_config
from vispath_lit.launch.keeping import RandomStates
from vispath_lit.launch.record import read_metrics
from vispath_lit.launch.train import train
from vispath_lit.models import closer_look
from vispath_lit.models.module import VisPathModule

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["parts/texts=exact", "compare_fixed=false", "logger=none", "trainer.max_epochs=2"]
QUICK += ["training.batch_size=2", "training.keep_every=2"]
STEPS = 12  # 11 questions, 2 a step, 2 epochs
KILLED = 9  # the last copy is of step 8, the third of the second epoch
KINDS = {
    "plain": [],
    "compgcn": ["parts/neighbourhood=compgcn", "parts.neighbourhood.refresh=4"],
    "gatv2": ["parts/neighbourhood=gatv2", "parts.neighbourhood.refresh=4"],
    "minilm_vision": ["parts/vlm=minilm_vision", "parts.intent.image_tokens=2"],
    "minilm_upper": ["parts/vlm=minilm_upper", "parts/neighbourhood=facts", "parts.intent.image_tokens=2"],
}


def run(folder: Path, cache: Path, *overrides: str) -> float | None:
    words = [*DATA, *QUICK, f"run_dir={folder}", f"cache_dir={cache}", *overrides]
    return train(load_config("train", words))


def run_until_killed(
    folder: Path, cache: Path, *overrides: str, target: Callable[..., None] | None = None
) -> None:
    """In a process of its own, which nobody can tell to tidy up; a forked one may inherit held locks."""
    child = get_context("spawn").Process(target=target or be_killed, args=(folder, cache, *overrides))
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def be_killed(folder: Path, cache: Path, *overrides: str) -> None:
    torch.set_num_threads(1)
    step = VisPathModule.training_step

    def last_step(module: VisPathModule, batch: Any, batch_idx: int) -> Tensor:
        if module.global_step == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(module, batch, batch_idx)

    VisPathModule.training_step = last_step  # type: ignore[method-assign, assignment]
    run(folder, cache, *overrides)


def be_killed_looking_closer(folder: Path, cache: Path, *overrides: str) -> None:
    torch.set_num_threads(1)

    def second_step(step: int, steps: int) -> float:
        if step == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    closer_look.rate = second_step
    run(folder, cache, *overrides)


def weights(folder: Path, name: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = read_checkpoint(folder / "checkpoints" / f"{name}.ckpt")["state_dict"]
    return found


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums have other bits with more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_run_ends_as_an_undisturbed_one(
    kind: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    whole, killed, resumed = (
        tmp_path / "outputs" / "train" / name for name in ("whole", "killed", "resumed")
    )
    run_until_killed(killed, cache, *KINDS[kind])
    assert not (killed / "metrics.json").exists()
    content = read_checkpoint(killed / "checkpoints" / "last.ckpt")
    assert content["global_step"] == KILLED - 1
    assert bool(content["remembered"][0]) == (kind in ("compgcn", "gatv2"))
    score = run(resumed, cache, *KINDS[kind], "ckpt_path=last", "seed=0")
    assert run(whole, cache, *KINDS[kind]) == score
    assert read_checkpoint(resumed / "checkpoints" / "last.ckpt")["global_step"] == STEPS
    for name in ("last", "best"):
        one, other = weights(whole, name), weights(resumed, name)
        assert one.keys() == other.keys()
        assert [key for key in one if not torch.equal(one[key], other[key])] == []
    assert without_cost(read_metrics(resumed)) == without_cost(read_metrics(whole))


def test_a_run_that_is_killed_in_its_closer_look_ends_as_an_undisturbed_one(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    planets = with_twins(tmp_path)
    pictures = ["parts.intent.image_tokens=2", "training.closer_look.batch=2"]
    pictures += [f"data.questions={planets / 'questions.jsonl'}"]
    whole, killed, resumed = (
        tmp_path / "outputs" / "train" / name for name in ("whole", "killed", "resumed")
    )
    run_until_killed(killed, cache, *pictures, target=be_killed_looking_closer)
    assert not (killed / "metrics.json").exists()
    score = run(resumed, cache, *pictures, "ckpt_path=last", "seed=0")
    assert run(whole, cache, *pictures) == score
    assert capsys.readouterr().err.count("a closer look at 2 questions") == 2
    one, two = weights(whole, "best"), weights(resumed, "best")
    assert one.keys() == two.keys()
    assert [key for key in one if not torch.equal(one[key], two[key])] == []
    before = weights(killed, "best")
    assert {key for key in one if not torch.equal(one[key], before[key])}


def test_damaged_random_states_are_refused() -> None:
    states = RandomStates().state_dict()
    RandomStates().load_state_dict(states)
    for damaged in ({}, {"processes": [{"cpu": torch.zeros(3, dtype=torch.uint8)}]}, {"processes": [None]}):
        with pytest.raises(CheckpointError, match="transfer=true"):
            RandomStates().load_state_dict(damaged)
