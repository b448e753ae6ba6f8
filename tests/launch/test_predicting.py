"""Many questions are answered in order, whatever is wrong with some of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluation_world import WordWalker

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.predictor import VisPath
from vispath_lit.types import Question


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
