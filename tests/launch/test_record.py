"""The run folder: complete, free of secrets and places, and never half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.metrics import MetricError
from vispath_lit.launch.record import RunRecord, latest_run, point_latest, run_folder, versions
from vispath_lit.launch.redaction import REDACTED, without_secrets

NOON = "2026-11-30_12-00-00"


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKey",
        "APIKEY",
        "hf_token",
        "hfToken",
        "wandb.password",
        "client-secret",
        "tokens",
        "Keys",
    ],
)
def test_secrets_are_removed(name: str) -> None:
    assert without_secrets({"chat": [{name: "hunter2"}]}) == {"chat": [{name: REDACTED}]}


def test_a_whole_section_of_credentials_is_removed() -> None:
    assert without_secrets({"credentials": {"user": "ann", "value": "x"}}) == {"credentials": REDACTED}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 512),
        ("monkey", "Bonobo"),
        ("tokenizer", "wordpiece"),
        ("api_key", None),
        ("keyword", "flag"),
        ("text_tokens", 1.5),
        ("key", False),
    ],
)
def test_what_is_no_secret_stays(name: str, value: object) -> None:
    assert without_secrets({name: value}) == {name: value}


def test_secrets_inside_values_are_removed() -> None:
    found = without_secrets({"url": "https://ann:hunter2@host/v1", "header": "X: Bearer abcdef.123456"})
    assert "hunter2" not in str(found)
    assert "abcdef" not in str(found)
    for url in (
        "https://ann:hun@ter2@host/v1",
        "git+https://ghp_ter2@host/v1",
        "https://host/v1?api-key=hunter2&n=3",
        "https://host/v1?n=3&access_token=hunter2#top",
    ):
        shown = str(without_secrets(f"see {url} there"))
        assert "ter2" not in shown
        assert "host/v1" in shown
        assert shown.endswith(" there")
    for plain in ("https://host:8000/v1", "https://host/v1?n=3&user=@ann", "a@b.c"):
        assert without_secrets(plain) == plain


def test_the_home_folder_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    found = without_secrets({"a": "/home/ann/data", "b": Path("/home/ann"), "c": "/home/anna/data"})
    assert found == {"a": "~/data", "b": "~", "c": "/home/anna/data"}


def test_versions_name_packages_but_no_place() -> None:
    found = versions()
    packages = found["packages"]
    assert isinstance(packages, dict)
    assert packages["torch"].startswith("2.")
    assert list(packages) == sorted(packages)
    text = json.dumps(found)
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert "/" not in text


def test_files_of_a_run(tmp_path: Path) -> None:
    run = RunRecord(tmp_path / "outputs" / "train" / NOON)
    assert run.folder == tmp_path / "outputs" / "train" / "2026-11-30_12-00-00"
    run.config({"seed": 3, "chat": {"api_key": "hunter2", "max_tokens": 9}})
    run.versions()
    run.fingerprints({"graph": "ab"})
    run.metrics({"b": 1, "a": {"x": 0.12345678, "y": (1, 2)}})
    assert OmegaConf.load(run.folder / "config.yaml") == {
        "seed": 3,
        "chat": {"api_key": REDACTED, "max_tokens": 9},
    }
    assert json.loads((run.folder / "fingerprints.json").read_text()) == {"graph": "ab"}
    written = (run.folder / "metrics.json").read_text()
    assert json.loads(written) == {"a": {"x": 0.123457, "y": [1, 2]}, "b": 1}
    assert written.index('"a"') < written.index('"b"')
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "config.yaml",
        "fingerprints.json",
        "metrics.json",
        "versions.json",
    ]


def test_nan_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    run = RunRecord(tmp_path)
    run.metrics({"f1": 0.5})
    with pytest.raises(MetricError, match="/overall/f1 is nan"):
        run.metrics({"overall": {"f1": float("nan")}})
    assert json.loads((tmp_path / "metrics.json").read_text()) == {"f1": 0.5}


def test_names_of_prediction_files_differ(tmp_path: Path) -> None:
    run = RunRecord(tmp_path)
    assert run.predictions().name == "predictions.jsonl"
    assert run.predictions(fixed=True).name == "predictions.fixed.jsonl"
    assert run.predictions("given_start", fixed=True).name == "predictions.fixed.given_start.jsonl"


def test_latest_moves_to_the_newest_run(tmp_path: Path) -> None:
    outputs = tmp_path / "outputs"
    first = RunRecord(outputs / "train" / NOON).folder
    second = RunRecord(outputs / "eval" / NOON).folder
    for run in (first, second, second, first):
        latest = point_latest(run)
        assert latest == outputs / "latest"
        assert latest.resolve() == run.resolve()
        assert latest_run(outputs) == run.resolve()
    assert latest.readlink() == Path("train/2026-11-30_12-00-00")
    assert sorted(path.name for path in outputs.iterdir()) == ["eval", "latest", "train"]
    outputs.rename(tmp_path / "moved")
    assert latest_run(tmp_path / "moved").name == first.name


def test_latest_is_a_text_file_where_links_are_not_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path, target_is_directory: bool = False) -> None:
        raise OSError("no right to make links")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    run = RunRecord(tmp_path / "train" / NOON).folder
    latest = point_latest(run)
    assert latest.read_text() == "train/2026-11-30_12-00-00\n"
    assert latest_run(tmp_path) == run.resolve()
    assert run_folder(latest) == run.resolve()
    assert run_folder(run) == run


def test_latest_that_leads_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="points to no run"):
        latest_run(tmp_path)
    (tmp_path / "latest").write_text("../elsewhere\n")
    with pytest.raises(DataError, match="no run in"):
        latest_run(tmp_path)
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").mkdir()
    run = RunRecord(tmp_path / "train" / NOON).folder
    with pytest.raises(ConfigError, match="is a folder"):
        point_latest(run)
    with pytest.raises(ConfigError, match="lies outside"):
        point_latest(tmp_path, tmp_path / "train")
