"""Many runs from one command: a list of seeds, and a search by Optuna that is judged by the val score."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf

from vispath_lit.launch.checkpoint import read_checkpoint
from vispath_lit.launch.record import read_metrics

ROOT = Path(__file__).parents[2]
PLANETS = ROOT / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["parts/texts=exact", "compare_fixed=false", "trainer.max_epochs=1"]


def sweep(folder: Path, patch: pytest.MonkeyPatch, *words: str) -> list[Path]:
    """`python train.py -m ...` in `folder`; gives the run folders in order."""
    patch.chdir(folder)
    patch.setenv("VISPATH_CACHE", str(folder / "cache"))
    patch.setattr(sys, "argv", ["train.py", "-m", *DATA, *QUICK, *words, "hydra.sweep.dir=sweep"])
    GlobalHydra.instance().clear()
    runpy.run_path(str(ROOT / "train.py"), run_name="__main__")
    return sorted(path for path in (folder / "sweep").iterdir() if path.is_dir())


def val_score(run: Path) -> float:
    callbacks = read_checkpoint(run / "checkpoints" / "best.ckpt")["callbacks"]
    (score,) = [
        float(state["best_model_score"]) for state in callbacks.values() if "best_model_score" in state
    ]
    return score


def test_each_seed_has_a_run_and_a_wandb_run_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = sweep(tmp_path, monkeypatch, "seed=0,1")
    assert [run.name for run in runs] == ["0", "1"]
    assert [OmegaConf.load(run / "config.yaml").seed for run in runs] == [0, 1]
    for run in runs:
        assert read_metrics(run)["overall"]["questions"] == 4
        assert len(list(run.glob("wandb/offline-run-*"))) == 1


def test_a_run_that_fails_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):  # at the end, after all of them
        sweep(tmp_path, monkeypatch, "logger=none", "parts.search.m1=0,30")
    assert "m1" in capfd.readouterr().err
    assert not (tmp_path / "sweep" / "0" / "metrics.json").exists()
    assert (tmp_path / "sweep" / "1" / "metrics.json").is_file()


def test_optuna_looks_for_the_best_val_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    words = ["sweep=optuna", "logger=none", "hydra.sweeper.n_trials=2"]
    words += ["hydra.sweeper.storage=sqlite:///study.db"]
    runs = sweep(tmp_path, monkeypatch, *words)
    assert [run.name for run in runs] == ["0", "1"]
    found = OmegaConf.to_container(OmegaConf.load(tmp_path / "sweep" / "optimization_results.yaml"))
    assert isinstance(found, dict)
    scores = [val_score(run) for run in runs]
    assert found["best_value"] == max(scores)
    best = OmegaConf.load(runs[scores.index(max(scores))] / "config.yaml")
    for key, value in found["best_params"].items():
        assert str(OmegaConf.select(best, key)) == str(value), key
    rates = {OmegaConf.select(OmegaConf.load(run / "config.yaml"), "training.optimizer.lr") for run in runs}
    assert len(rates) == 2
    assert all(read_metrics(run)["split"] == "val" for run in runs)
    assert (tmp_path / "study.db").stat().st_size > 0
