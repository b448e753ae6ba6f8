"""The ten-entity example from training to answers, as the README tells it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.data.questions import read_questions
from vispath_lit.errors import CheckpointError, ConfigError, DataError
from vispath_lit.evaluation.summary import without_cost
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.predictor import VisPath
from vispath_lit.launch.record import read_metrics
from vispath_lit.launch.testing import possible
from vispath_lit.launch.train import train
from vispath_lit.types import Question

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
QUICK = ["parts/texts=exact", "parts/texts@fixed.texts=exact", "logger=none", "trainer.max_epochs=3"]


def run_train(folder: Path, *overrides: str) -> Path:
    train(load_config("train", [*DATA, *QUICK, f"run_dir={folder}", *overrides]))
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(cache))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VISPATH_CACHE", str(cache))
        return run_train(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def checkpoint(run: Path) -> Path:
    return run / "checkpoints" / "best.ckpt"


def test_a_run_leaves_its_records(run: Path) -> None:
    metrics = read_metrics(run)
    assert metrics["data"] == "custom"
    assert metrics["overall"]["questions"] == 4
    for tables in (metrics, metrics["fixed"], metrics["given_start"], metrics["fixed"]["given_start"]):
        assert {"sbert@0.3", "exact_match", "hits@1", "f1", "answer_recall@3"} <= set(tables["overall"])
        assert {"path_hit@3", "path_f1"} <= set(tables["overall"])
        assert set(tables["cost"]) >= {"llm_calls", "vlm_calls", "text_tokens", "seconds", "requests"}
    assert set(metrics["fingerprints"]) >= {"graph", "questions", "text_encoder", "checkpoint"}
    for name in ("config.yaml", "versions.json", "fingerprints.json", "predictions.jsonl", "report.html"):
        assert (run / name).stat().st_size > 0
    assert len((run / "predictions.jsonl").read_text().splitlines()) == 4


def test_the_same_seed_gives_the_same_metrics(run: Path, tmp_path: Path) -> None:
    again = run_train(tmp_path / "again")
    assert without_cost(read_metrics(again)) == without_cost(read_metrics(run))


def test_a_checkpoint_evaluates_to_its_own_numbers(run: Path, checkpoint: Path, tmp_path: Path) -> None:
    overrides = [f"ckpt_path={checkpoint}", f"run_dir={tmp_path}"]
    evaluate_run(load_config("eval", overrides), overrides)
    assert read_metrics(tmp_path)["overall"] == read_metrics(run)["overall"]


def test_fixed_parts_need_no_checkpoint(run: Path, tmp_path: Path) -> None:
    overrides = [*DATA, "parts=fixed", "parts/texts=exact", f"run_dir={tmp_path}"]
    evaluate_run(load_config("eval", overrides), overrides)
    assert read_metrics(tmp_path)["overall"] == read_metrics(run)["fixed"]["overall"]


def test_learned_parts_need_a_checkpoint(tmp_path: Path) -> None:
    overrides = [*DATA, "parts=learned", "parts/texts=exact", f"run_dir={tmp_path}"]
    with pytest.raises(CheckpointError, match="ckpt_path"):
        evaluate_run(load_config("eval", overrides), overrides)


def test_five_lines_of_python(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    vispath = VisPath.from_checkpoint(checkpoint)
    answer = vispath.ask("Where was the discoverer of Europa born?")
    assert answer.start == "Europa"
    assert answer.text
    assert answer.path is not None
    assert answer.path.steps[-1][1] == answer.text
    assert answer.provenance == "stopped"
    picture = PLANETS / "questions_images" / "view04.jpg"
    assert vispath.ask("Where was the astronomer who found this moon born?", image=picture).start
    with pytest.raises(DataError):
        vispath.ask("What is this?", image=tmp_path / "missing.png")


def test_ask_and_predict_from_the_command_line(checkpoint: Path, tmp_path: Path) -> None:
    asked = CliRunner().invoke(
        app, ["ask", "Where was the discoverer of Europa born?", "--ckpt", str(checkpoint), "--json"]
    )
    assert asked.exit_code == 0, asked.output
    answer: dict[str, Any] = json.loads(asked.stdout)
    assert answer["start"] == "Europa"
    assert answer["seconds"] > 0
    questions, out = PLANETS / "questions.jsonl", tmp_path / "answers.jsonl"
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"id": "b1", "question": "Which star does the planet that Phobos orbits circle?"}\n')
    for file in (questions, bare):
        done = CliRunner().invoke(app, ["predict", str(file), str(out), "--ckpt", str(checkpoint)])
        assert done.exit_code == 0, done.output
        lines = [json.loads(line) for line in out.read_text(encoding="utf8").splitlines()]
        assert [line["question_id"] for line in lines] == [question.id for question in read_questions(file)]
        assert all(line["provenance"] in ("stopped", "fallback", "terminal", "abstained") for line in lines)


def test_another_graph_needs_transfer(checkpoint: Path, toy_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="transfer"):
        VisPath.from_checkpoint(checkpoint, graph=toy_folder)
    vispath = VisPath.from_checkpoint(checkpoint, graph=toy_folder, transfer=True)
    assert vispath.graph.num_entities > 0
    assert vispath.ask("What is the capital of France?").provenance in ("stopped", "terminal", "abstained")


def test_transfer_goes_on_training_or_answers_zero_shot(checkpoint: Path, tmp_path: Path) -> None:
    smaller = tmp_path / "graph"
    shutil.copytree(PLANETS / "graph", smaller)
    relations = smaller / "relations.tsv"
    text = relations.read_text(encoding="utf8")
    relations.write_text(text.replace("next planet away from the Sun", "following planet"))
    other = [f"data.graph={smaller}", f"ckpt_path={checkpoint}", "transfer=true"]
    zero_shot = run_train(tmp_path / "zero", *other, "fit=false")
    assert read_metrics(zero_shot)["overall"]["questions"] == 4
    assert not (zero_shot / "checkpoints").exists()
    trained = run_train(tmp_path / "more", *other, "trainer.max_epochs=1")
    assert (trained / "checkpoints" / "best.ckpt").is_file()


def test_a_run_without_pictures_topics_or_paths(tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    lines = []
    for line in (PLANETS / "questions.jsonl").read_text(encoding="utf8").splitlines():
        kept = json.loads(line)
        named = {"moon": "the Moon", "europa": "Europa", "phobos": "Phobos", "earth": "Earth", "mars": "Mars"}
        text = f"{kept['question']} It is {named[kept['topic_entity']]}."
        lines.append({"id": kept["id"], "question": text, "answers": kept["answers"], "split": kept["split"]})
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf8")
    done = run_train(tmp_path / "run", f"data.questions={questions}")
    metrics = read_metrics(done)
    assert metrics["overall"]["questions"] == 4
    assert "given_start" not in metrics


@pytest.mark.parametrize(
    ("overrides", "error", "said"),
    [
        (["data.questoins=x"], ConfigError, "questoins"),
        (["parts/texts=exakt"], ConfigError, "exakt"),
        (["data.graph=/nowhere/at/all"], DataError, "/nowhere/at/all"),
        (["data.split=exam"], DataError, "exam"),
        (["data.limit=0"], ConfigError, "0"),
        (["parts.search.m1=0"], ConfigError, "m1"),
        (["ckpt_path=/nowhere.ckpt"], CheckpointError, "/nowhere.ckpt"),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path, overrides: list[str], error: type[Exception], said: str, run: Path
) -> None:
    with pytest.raises(error, match=said):
        run_train(tmp_path / "run", "fit=false", f"ckpt_path={run / 'checkpoints' / 'best.ckpt'}", *overrides)


def test_a_damaged_checkpoint_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    content = checkpoint.read_bytes()
    for name, damaged in {
        "cut": content[: len(content) // 2],
        "foreign": b"not a checkpoint",
        "empty": b"",
    }.items():
        file = tmp_path / f"{name}.ckpt"
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=name):
            VisPath.from_checkpoint(file)


def test_a_trained_system_takes_a_prompted_judge_and_answer(checkpoint: Path) -> None:
    prompted = ["parts/judge=prompted", "parts/selector=prompted", "chat=scripted"]
    trained = VisPath.from_checkpoint(checkpoint)
    mixed = VisPath.from_checkpoint(checkpoint, overrides=prompted)
    question, start = "What is the star of the planet orbited by the moon?", "phobos"
    plain, asked = trained.ask(question, start=start), mixed.ask(question, start=start)
    assert (asked.text, asked.statement) == ("the answer", "The paths lead to the answer.")
    assert asked.start == plain.start
    assert [str(path) for path in asked.paths]


def test_what_no_question_can_be_given_is_left_out() -> None:
    plain, known = Question("a", "?"), Question("b", "?", topic_entity="earth", hops=2)
    assert possible(["start_and_depth", "start"], [plain, known]) == ["start", "start_and_depth"]
    assert possible(["start"], [plain]) == possible([], [known]) == ["nothing"]
    with pytest.raises(ConfigError, match="given holds 'end'"):
        possible(["end"], [known])
