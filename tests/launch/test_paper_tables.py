"""The paper's tables on the ten-entity example: from finished runs, and by running what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation import paper, published
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.paper_tables import SHEETS, compared, make_table, read_run, read_runs

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = [
    "data=custom",
    f"data.graph={PLANETS / 'graph'}",
    f"data.questions={PLANETS / 'questions.jsonl'}",
    "parts/texts=exact",
]


def evaluate(folder: Path, *overrides: str) -> Path:
    asked = [*DATA, f"run_dir={folder}", *overrides]
    evaluate_run(load_config("eval", asked), asked)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """VisPath with fixed parts, twice, and Think-on-Graph with a scripted model."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISPATH_CACHE", str(root / "cache"))
        return [
            evaluate(root / "full"),
            evaluate(root / "narrow", "parts.search.m3=1", "parts.search.validation=false"),
            evaluate(root / "tog", "system=tog", "chat=scripted"),
        ]


@pytest.mark.parametrize("kind", sorted(SHEETS))
def test_each_table_is_one_command(kind: str, runs: list[Path], tmp_path: Path) -> None:
    sheet = make_table(kind, runs, tmp_path)
    assert sheet.lines
    for ending in ("md", "tex", "html"):
        assert (tmp_path / f"{kind}.{ending}").stat().st_size > 100


def test_the_main_table_says_who_was_given_what(runs: list[Path], tmp_path: Path) -> None:
    sheet = make_table("main", runs, tmp_path)
    names = [line.cells[0] for line in sheet.lines]
    assert names == ["vispath (full)", "vispath (narrow)", "Think-on-Graph, start given"]
    metrics = json.loads((runs[0] / "metrics.json").read_text())
    low, high = metrics["intervals"]["overall"]["sbert@0.3"]
    value = metrics["overall"]["sbert@0.3"]
    assert sheet.lines[0].cells[-1] == f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
    assert any("gold start" in note for note in sheet.notes)
    assert not any(line.published for line in sheet.lines), "no data set of the paper's"


def test_published_rows_stand_beside_the_papers_own_data(runs: list[Path], tmp_path: Path) -> None:
    theirs = shutil.copytree(runs[0], tmp_path / "theirs")
    metrics = json.loads((theirs / "metrics.json").read_text())
    (theirs / "metrics.json").write_text(json.dumps(metrics | {"data": "ReasonVQA"}))
    lines = make_table("main", [theirs], tmp_path).lines
    assert [line.cells[-1] for line in lines if line.cells[0].startswith("VisPath (GPT-4o)")] == ["68.0"]
    assert sum(line.published for line in lines) == 12
    assert sum(line.published for line in make_table("grounding", [theirs], tmp_path).lines) == 4
    assert not any(line.published for line in make_table("main", [theirs], tmp_path, metric="hits@1").lines)


def test_the_ablations_that_the_papers_text_tells(runs: list[Path], tmp_path: Path) -> None:
    theirs = [shutil.copytree(run, tmp_path / f"theirs_{run.name}") for run in runs[:2]]
    for folder in theirs:
        metrics = json.loads((folder / "metrics.json").read_text())
        metrics["by_hop"] = dict.fromkeys("234", metrics["overall"])
        (folder / "metrics.json").write_text(json.dumps(metrics | {"data": "VisPath-Bench"}))
    sheet = make_table("ablation", theirs, tmp_path)
    assert sheet.columns == (
        "run",
        "questions",
        *(f"{n} hops" for n in "234"),
        "all [95 %]",
        "change [95 %]",
        "p",
    )
    assert [line.cells for line in sheet.lines if line.published] == [
        ("full system, as published", "", "74.0", "62.4", "57.0", "64.5", "", ""),
        ("without graph-aware validation, as published", "", "", "", "", "56.2", "-8.3", ""),
        ("without visual intent, as published", "", "", "", "", "59.0", "-5.5", ""),
        ("without chain pruning, as published", "", "", "", "", "58.5", "-6.0", ""),
        ("without evidence checking, as published", "", "74.0", "61.6", "58.0", "", "", ""),
    ]
    assert published.ABLATION["full system"] == published.main_rows("vispath_bench")["VisPath (GPT-4o)"]


def test_starts_come_with_intervals(runs: list[Path], tmp_path: Path) -> None:
    sheet = make_table("grounding", runs[:1], tmp_path)
    assert sheet.columns[3:] == ("strict [95 %]", "soft [95 %]", "among five [95 %]")
    metrics = json.loads((runs[0] / "metrics.json").read_text())
    for cell, key in zip(sheet.lines[0].cells[3:], ("strict", "soft", "recall@5"), strict=True):
        low, high = metrics["intervals"]["overall"][f"grounding_{key}"]
        assert low <= metrics["grounding"][key] <= high
        assert cell == f"{100 * metrics['grounding'][key]:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
    older = shutil.copytree(runs[0], tmp_path / "older")
    for key in ("strict", "soft", "recall@5"):
        del metrics["intervals"]["overall"][f"grounding_{key}"]
    (older / "metrics.json").write_text(json.dumps(metrics))
    strict = make_table("grounding", [older], tmp_path).lines[0].cells[3]
    assert strict == f"{100 * metrics['grounding']['strict']:.1f}", "a run of before"


def test_a_training_run_shows_its_fixed_system_too(runs: list[Path], tmp_path: Path) -> None:
    trained = shutil.copytree(runs[0], tmp_path / "trained")
    metrics = json.loads((trained / "metrics.json").read_text())
    fixed = json.loads((runs[1] / "metrics.json").read_text())
    (trained / "metrics.json").write_text(json.dumps(metrics | {"fixed": fixed}))
    for kind in ("main", "grounding", "cost"):
        lines = make_table(kind, [trained], tmp_path).lines
        assert [line.cells[0] for line in lines if not line.published] == ["vispath, fixed parts", "vispath"]
    assert len(make_table("backbones", [trained], tmp_path).lines) == 1


def test_finished_runs_stand_below_what_is_run_for_the_table(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(tmp_path / "cache"))
    rows = {"main": ["vispath"], "cost": ["vispath"], "grounding": ["validation false", "validation true"]}
    for kind, made in rows.items():
        lines = make_table(kind, runs[:1], tmp_path / kind, [*DATA, "given=[]"]).lines
        finished = "vispath" if kind == "grounding" else "vispath (full)"
        shown = [line.cells[0] for line in lines if not line.published]
        assert [name for name in shown if name not in made] in ([finished], ["vispath (full)"])
        assert shown[: len(made)] == made


def test_systems_that_ask_a_model_are_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(tmp_path / "cache"))
    asked = [*DATA, "chat=scripted", "chat.blind=true"]
    names = [line.cells[0] for line in make_table("main", [], tmp_path, asked).lines]
    assert {"vispath, blind", "tog, blind, start given", "zero_shot, blind"} <= set(names)
    twice = [
        run.label for run in read_runs([tmp_path / "tog", shutil.copytree(tmp_path / "tog", tmp_path / "x")])
    ]
    assert twice == ["Think-on-Graph, blind (tog)", "Think-on-Graph, blind (x)"]
    for system, protocol in (("tog", "predictions.given_start"), ("vispath", "predictions")):
        assert [file.stem for file in (tmp_path / system).glob("predictions*")] == [protocol]
    metrics = json.loads((tmp_path / "tog" / "metrics.json").read_text())
    assert metrics["main"] == "given_start"
    assert metrics["cost"] == metrics["given_start"]["cost"]
    assert "start given</h1>" in (tmp_path / "tog" / "report.html").read_text()


def test_a_run_that_was_given_its_starts_is_not_shown_as_one_that_found_them(
    runs: list[Path], tmp_path: Path
) -> None:
    given = shutil.copytree(runs[0], tmp_path / "given")
    evaluate(given, "given=[start]")
    assert (given / "predictions.jsonl").is_file(), "of the run before"
    with pytest.raises(DataError, match="not tested with nothing given"):
        compared([given, runs[1]], "hits@1", "")
    assert "start given" in compared([given, runs[1]], "hits@1", "given_start").title
    with pytest.raises(DataError, match="its starts were given"):
        make_table("grounding", [given], tmp_path)
    assert make_table("backbones", [given], tmp_path).lines[0].cells[0] == "vispath, start given"
    assert make_table("ablation", [given, runs[1]], tmp_path).lines[1].cells[-1]
    assert "Start given." in make_table("beam", [given], tmp_path).notes


def test_the_cost_table_measures_and_cites(runs: list[Path], tmp_path: Path) -> None:
    sheet = make_table("cost", runs, tmp_path)
    assert "its tokens are of text alone" in sheet.notes[0]
    lines = {line.cells[0]: line.cells for line in sheet.lines}
    assert lines["vispath (full)"][1:5] == ("0.0", "0.0", "0.0", "0")
    assert float(lines["Think-on-Graph, start given"][1]) > 1
    assert lines["VisPath (GPT-4o-mini), as published"][1:5] == ("5.8", "5.2", "", "3600")


def test_the_beam_table_varies_one_setting_at_a_time(runs: list[Path]) -> None:
    settings = [line.cells[:2] for line in paper.beam_sheet(read_runs(runs[:2])).lines]
    assert ("M3 = 1", "") in settings
    assert ("M3 = 3", "yes") in settings
    bare = read_run(runs[0])
    with pytest.raises(DataError, match="none of the runs"):
        paper.beam_sheet([paper.Run(bare.folder, "x", {}, bare.metrics)])


def test_runs_are_compared_question_by_question(runs: list[Path], tmp_path: Path) -> None:
    asked = ["report", "compare", *map(str, runs), "--metric", "hits@1", "--out", str(tmp_path)]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    rows = [line.split(" | ") for line in found.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 4
    assert rows[1][-2:] == ["", " |"] or rows[1][-2].strip() == ""
    assert "[" in rows[2][-2], "an interval of the difference"
    assert (tmp_path / "comparison.tex").is_file()
    given = CliRunner().invoke(
        app, ["report", "compare", *map(str, runs[:2]), "--given", "start", "--format", "html"]
    )
    assert given.stdout.startswith("<!doctype html>")
    assert "start given" in given.stdout


def test_a_run_is_still_reported_without_a_word_between(runs: list[Path]) -> None:
    for asked in (["report", str(runs[0])], ["report", "show", str(runs[0])]):
        found = CliRunner().invoke(app, [*asked, "--json"])
        assert json.loads(found.stdout)["system"] == "vispath"
    assert "compare" in CliRunner().invoke(app, ["report", "--help"]).stdout


def test_what_is_missing_is_run_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(tmp_path / "cache"))
    asked = ["report", "table", "grounding", "--out", str(tmp_path / "tables")]
    for override in [*DATA, "given=[]"]:
        asked += ["--set", override]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert [
        line.split(" | ")[2] for line in found.stdout.splitlines() if line.startswith("| validation")
    ] == ["no", "yes"]
    stamps = {file: file.stat().st_mtime_ns for file in tmp_path.glob("tables/*/metrics.json")}
    assert len(stamps) == 2
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert {file: file.stat().st_mtime_ns for file in stamps} == stamps
    with pytest.raises(DataError, match="none of the runs"):
        make_table("grounding", [], tmp_path / "tables", [*DATA, "seed=1"])


def test_odd_runs_are_refused_in_one_line(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_run(tmp_path)
    cases: dict[str, Any] = {"empty": "", "list": "[]", "bare": '{"system": "x"}', "null": "null"}
    cases["deep"] = "[" * 100_000
    for name, content in cases.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.json").write_text(content)
        with pytest.raises(DataError):
            read_run(tmp_path / name)
    broken = shutil.copytree(runs[0], tmp_path / "broken")
    (broken / "config.yaml").write_text("a: [")
    with pytest.raises(DataError, match="damaged"):
        read_run(broken)
    hollow = shutil.copytree(runs[0], tmp_path / "hollow")
    metrics = json.loads((hollow / "metrics.json").read_text())
    (hollow / "metrics.json").write_text(json.dumps(metrics | {"cost": {}, "intervals": {}}))
    for kind in ("cost", "main"):
        with pytest.raises(DataError, match="run it again"):
            make_table(kind, [hollow], tmp_path / "out")
    with pytest.raises(DataError, match="run it again"):
        compared([runs[0], hollow], "hits@1", "")
    for metric in ("questions", "sbert@0.3_chance", "accuracy"):  # two of them are there, but are no metrics
        with pytest.raises(DataError, match=rf"no '{metric}' with nothing given; it has sbert@0\.3, "):
            compared(runs[:2], metric, "")
        with pytest.raises(ConfigError, match=rf"no metric '{metric}'; the runs have sbert@0\.3, "):
            make_table("main", runs[:2], tmp_path / "out", metric=metric)
    with pytest.raises(ConfigError, match="no table is called 'x'"):
        make_table("x", runs, tmp_path)
    with pytest.raises(ConfigError, match="not both"):
        make_table("beam", runs, tmp_path, ["seed=1"])
    with pytest.raises(ConfigError, match="no metric 'x'"):
        make_table("main", runs, tmp_path, metric="x")
    shorter = shutil.copytree(runs[1], tmp_path / "shorter")
    lines = (shorter / "predictions.jsonl").read_text().splitlines(keepends=True)
    (shorter / "predictions.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(DataError, match="not about the same questions"):
        paper.comparison_sheet(read_runs([runs[0], shorter]))
