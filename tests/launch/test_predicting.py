"""Many questions are answered in order, whatever is wrong with some of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_world import WordWalker
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.data.questions import write_questions
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.predictor import VisPath
from vispath_lit.types import Prediction, Query, Question


@pytest.mark.parametrize("batch_size", [1, 2, 64])
def test_a_question_that_cannot_be_asked_fails_alone(
    toy_graph: KnowledgeGraph, toy_folder: Path, batch_size: int
) -> None:
    (toy_folder / "broken.png").write_bytes(b"no picture")
    questions = [
        Question("one", "What is the capital of France?"),
        Question("two", "Which flag?", image=toy_folder / "missing.png"),
        Question("three", "What is the capital?", topic_entity="de"),
        Question("four", "What is the capital?", topic_entity="nowhere"),
        Question("five", "Which flag?", image=toy_folder / "broken.png"),
    ]
    found = list(VisPath(WordWalker(toy_graph), toy_graph).predict(questions, batch_size))
    assert [one.text for one in found] == ["Paris", "", "Berlin", "", ""]
    assert [one.provenance == "failed" for one in found] == [False, True, False, True, True]
    for answer, reason in zip(found[1::2] + found[4:], ("missing.png", "nowhere", "broken.png"), strict=True):
        assert reason in answer.statement


class Halving(WordWalker):
    """Ends each answer with half an emoji, as a language model may."""

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        return [replace(one, answer=f"{one.answer}\ud83d") for one in super().answer(queries)]


def test_every_line_of_a_file_of_answers_can_be_read(
    toy_graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions, out = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    asked = [Question("one", "What is the capital of France?"), Question("two", "?", topic_entity="nowhere")]
    write_questions(questions, asked)
    opened = VisPath(Halving(toy_graph), toy_graph)
    monkeypatch.setattr(VisPath, "from_checkpoint", lambda *_, **__: opened)
    done = CliRunner().invoke(app, ["predict", str(questions), str(out)])
    assert done.exit_code == 0, done.output
    assert "1 of them failed" in " ".join(done.output.split())
    lines = [json.loads(line) for line in out.read_bytes().split(b"\n")[:-1]]
    assert [line["text"] for line in lines] == ["Paris?", ""]
    assert "nowhere" in lines[1]["statement"]
