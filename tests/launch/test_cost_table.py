"""Table VII from one command: what a learned system costs a question, beside the paper's figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.launch.config import load_config
from vispath_lit.launch.train import train

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["parts/texts=exact", "parts/texts@fixed.texts=exact", "logger=none", "trainer.max_epochs=1"]
COLUMNS = [
    "system",
    "LLM calls",
    "VLM calls",
    "VLM forwards",
    "tokens, pictures included",
    "seconds",
    "peak GB",
]
PAPER = ["VisPath (GPT-4o-mini), as published", "5.8", "5.2", "", "3600", "", ""]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training run whose intent reads with a vision-language backbone."""
    root = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISPATH_CACHE", str(root / "cache"))
        train(load_config("train", [*DATA, *QUICK, f"run_dir={root / 'run'}", "parts/vlm=minilm_vision"]))
    return root / "run"


def table(out: Path, *asked: str) -> list[list[str]]:
    """The cells that `vispath report table cost` prints, the heading first."""
    found = CliRunner().invoke(app, ["report", "table", "cost", *asked, "--out", str(out)])
    assert found.exit_code == 0, found.output
    lines = [line for line in found.stdout.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def check(row: list[str], forwards: str) -> None:
    """No language model; the seconds and the memory are measured."""
    assert row[1:5] == ["0.0", "0.0", forwards, "0"]
    assert float(row[5]) > 0
    assert float(row[6]) > 0.1


def test_of_a_training_run(trained: Path, tmp_path: Path) -> None:
    head, fixed, learned, paper = table(tmp_path, str(trained))
    assert head == COLUMNS
    assert (fixed[0], learned[0]) == ("vispath, fixed parts", "vispath")
    check(fixed, "0.0")
    check(learned, "1.0")
    assert paper == PAPER


def test_of_a_checkpoint(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(trained.parent / "cache"))
    asked = [f"ckpt_path={trained / 'checkpoints' / 'best.ckpt'}", "data.split=train", "given=[nothing]"]
    _, learned, paper = table(tmp_path, *[word for one in asked for word in ("--set", one)])
    check(learned, "1.0")
    assert paper == PAPER
    lines = (tmp_path / "vispath" / "predictions.jsonl").read_text(encoding="utf8").splitlines()
    for one in map(json.loads, lines):
        assert one["cost"]["llm_calls"] == one["cost"]["vlm_calls"] == one["cost"]["text_tokens"] == 0
        assert one["cost"]["vlm_forwards"] == 1 <= len(one["trace"]), "at most one a hop"
