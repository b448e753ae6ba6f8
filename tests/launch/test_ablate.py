"""Ablations of the ten-entity example: killed, resumed, tabulated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig, OmegaConf
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.evaluation.records import read_records
from vispath_lit.launch import ablate as launch
from vispath_lit.launch.ablate import FULL, ablate, read_ablations
from vispath_lit.launch.checkpoint import resolve
from vispath_lit.launch.config import conf_dir, load_config, plain
from vispath_lit.launch.train import train
from vispath_lit.models.module import VisPathModule

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["parts/texts=exact", "parts/texts@fixed.texts=exact", "logger=none", "trainer.max_epochs=2"]
GIVEN = [*DATA, *QUICK]
ONLY = ["chain_pruning", "on_policy_states", "validation", "lora"]
# What a default may have off.
EVERYTHING = ["experiment=everything"]
KNOWN = list(read_ablations())


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(cache))


@pytest.mark.parametrize("choice", sorted(file.stem for file in (conf_dir() / "ablation").glob("*.yaml")))
def test_every_ablation_names_keys_that_exist(choice: str) -> None:
    full = plain(load_config("train", ["run_dir=x", *EVERYTHING]))
    for name, ablation in read_ablations(choice).items():
        without = plain(load_config("train", ["run_dir=x", *EVERYTHING, *ablation.overrides]))
        changed = {key for key in full if full[key] != without[key]}
        assert changed, f"{name} changes nothing"
        assert ablation.needs is None or OmegaConf.select(OmegaConf.create(full), ablation.needs) is not None
        assert ablation.retrain or changed == {"parts"}, f"{name} changes {changed} without training"


def killed_in(folder: str) -> Callable[[DictConfig], None]:
    """`train` as it is, until it comes to a run of this name and is killed after its first epoch."""

    def run(config: DictConfig) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if Path(config.run_dir).name == folder:
                patch.setattr(VisPathModule, "on_train_epoch_start", _killed)
            train(config)

    return run


def _killed(module: VisPathModule) -> None:
    if module.current_epoch == 1:
        raise KeyboardInterrupt


def files(folder: Path, name: str) -> dict[str, int]:
    return {str(file.relative_to(folder)): file.stat().st_mtime_ns for file in folder.glob(f"*/{name}")}


def test_killed_ablations_go_on_and_end_in_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "outputs" / "ablate" / "one"
    with monkeypatch.context() as patch:
        patch.setattr(launch, "train", killed_in("on_policy_states"))
        with pytest.raises(KeyboardInterrupt):
            ablate(folder, GIVEN, only=ONLY)
    before = files(folder, "metrics.json")
    assert set(before) == {"full/metrics.json", "chain_pruning/metrics.json"}
    assert (folder / "on_policy_states" / "checkpoints" / "last.ckpt").is_file()
    resumed: list[DictConfig] = []

    def told(config: DictConfig) -> None:
        resumed.append(config.copy())
        train(config)

    with monkeypatch.context() as patch:
        patch.setattr(launch, "train", told)
        found = ablate(folder, GIVEN, only=ONLY)
    assert [Path(config.run_dir).name for config in resumed] == ["on_policy_states"]
    assert resumed[0].ckpt_path.endswith("on_policy_states/checkpoints/last.ckpt")
    assert before.items() <= files(folder, "metrics.json").items()
    check_tables(folder, found)
    assert (tmp_path / "outputs" / "latest").resolve() == folder / FULL
    assert resolve("best") == Path("outputs/ablate/one/full/checkpoints/best.ckpt")
    with pytest.raises(ConfigError, match="other settings"):
        ablate(folder, [*GIVEN, "seed=1"], only=ONLY)
    again = CliRunner().invoke(
        app, ["ablate", *GIVEN, "--out", str(folder), "--json", *(f"--only={name}" for name in ONLY)]
    )
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout) == json.loads((folder / "ablations.json").read_text())


def check_tables(folder: Path, found: dict[str, Any]) -> None:
    assert set(found["tables"]) == {"given_nothing", "given_start", "given_start_and_depth"}
    assert "off already" in found["notes"]["validation"]
    assert "parts.vlm.rank" in found["notes"]["lora"]
    table = found["tables"]["given_start"]
    assert set(table["without"]) == {"chain_pruning", "on_policy_states"}
    records = {
        name: read_records(folder / name / "predictions.given_start.jsonl")
        for name in (FULL, "chain_pruning", "on_policy_states")
    }
    for name, row in table["without"].items():
        change = row["comparison"]["overall"]["hits@1"]
        hits = {which: sum(r.correct for r in records[which]) / 4 for which in (FULL, name)}
        assert row["overall"]["hits@1"] == pytest.approx(hits[name])
        assert change["difference"] == pytest.approx(hits[name] - hits[FULL])
        assert change["low"] <= change["difference"] <= change["high"]
    checkpoints = {p.parts[-3] for p in folder.glob("*/checkpoints/best.ckpt")}
    assert checkpoints == {FULL, "on_policy_states"}, "what has no weights is not trained"
    config = OmegaConf.load(folder / "chain_pruning" / "config.yaml")
    assert isinstance(config, DictConfig)
    assert not config.parts.search.chain_pruning
    shown = (folder / "ablations.md").read_text(encoding="utf8")
    assert "| chain_pruning |" in shown
    assert "start given, 4 questions" in shown


def test_an_ablation_that_fails_is_noted_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = conf_dir() / "ablation"
    monkeypatch.setattr(launch, "conf_dir", lambda: tmp_path)
    (tmp_path / "ablation").mkdir()
    text = (bad / "default.yaml").read_text(encoding="utf8")
    (tmp_path / "ablation" / "mine.yaml").write_text(
        text + "nothing:\n  overrides: [parts.search.m33=1]\n  retrain: false\n", encoding="utf8"
    )
    runs: list[str] = []
    monkeypatch.setattr(launch, "train", lambda config: runs.append(Path(config.run_dir).name))
    monkeypatch.setattr(launch, "read_checkpoint", lambda path: {})
    monkeypatch.setattr(launch, "weights_fingerprint", lambda content: "weights")
    monkeypatch.setattr(launch, "_tables", lambda full, done, notes, seed: {"done": done, "notes": notes})
    found = ablate(tmp_path / "runs", GIVEN, choice="mine")
    assert "m33" in found["notes"]["nothing"]
    assert runs == [FULL, *found["done"]]
    assert len(found["done"]) == len(KNOWN) + 1 - len(found["notes"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("full:\n  overrides: [a=1]\n  retrain: false\n", "'full'"),
        ("a/b:\n  overrides: [a=1]\n  retrain: false\n", "'a/b'"),
        ("one:\n  overrides: [a=1]\n", "retrain"),
        ("one:\n  overrides: a=1\n  retrain: false\n", "overrides"),
    ],
)
def test_a_malformed_list_is_named(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "conf_dir", lambda: tmp_path)
    (tmp_path / "ablation").mkdir()
    (tmp_path / "ablation" / "mine.yaml").write_text(text, encoding="utf8")
    with pytest.raises(ConfigError, match=said):
        read_ablations("mine")
    with pytest.raises(ConfigError, match="no ablations 'yours'; there are"):
        read_ablations("yours")


def test_unknown_names_are_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chain_prunning"):
        ablate(tmp_path / "runs", GIVEN, only=["chain_prunning"])
    with pytest.raises(CheckpointError, match=r"nowhere\.ckpt"):
        ablate(tmp_path / "runs", GIVEN, ckpt=Path("/nowhere.ckpt"))
