"""The evaluator on a system that answers by a rule: scores by hand, resume, fixed denominators."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation_world import TrigramEncoder, WordWalker, toy_questions

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.records import Record, read_records
from vispath_lit.evaluation.scoring import PredictionError
from vispath_lit.evaluation.summary import tables, without_cost
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Cost, Prediction, Query, Question

ENCODER = TrigramEncoder()


class Changed:
    """Another system whose predictions are changed before they are handed over."""

    def __init__(self, system: WordWalker, **changes: object) -> None:
        self.system = system
        self.changes = changes
        self.name = system.name

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        return [replace(p, **self.changes) for p in self.system.answer(queries)]  # type: ignore[arg-type]


class Dying(WordWalker):
    """Raises once it has answered `lives` questions."""

    lives = 4

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        if len(self.asked) >= self.lives:
            raise KeyboardInterrupt
        return super().answer(queries)


class Tired(WordWalker):
    """Fails on every question until it is woken."""

    awake = False

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        answers = super().answer(queries)
        return (
            answers
            if self.awake
            else [Prediction("", None, "failed", cost=Cost(llm_calls=9)) for _ in answers]
        )


def by_id(evaluation: Evaluation) -> dict[str, Record]:
    return {record.id: record for record in evaluation.records}


@pytest.fixture
def questions(toy_folder: Path) -> list[Question]:
    return toy_questions(toy_folder)


def test_a_malformed_rule_is_refused_before_anything_is_asked(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    walker, file = WordWalker(toy_graph), tmp_path / "predictions.jsonl"
    rule = {"scoring": {"kind": "range", "ranges": [[2, 1]]}}
    asked = [*questions[:-1], replace(questions[-1], meta=rule)]
    with pytest.raises(DataError, match=f"question {questions[-1].id!r}: scoring is"):
        evaluate(walker, asked, toy_graph, ENCODER, batch_size=1, predictions=file)
    assert walker.asked == []
    assert not file.exists()


def test_scores_by_hand(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    found = by_id(evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=4))
    assert list(found) == [q.id for q in questions]

    q1 = found["q1"]  # ch borders de, fr; their capitals; Switzerland has none; both gold paths are kept
    assert q1.answer in ("Paris", "Berlin")
    assert q1.scores["hits@1"] == q1.scores["exact_match"] == q1.scores["path_hit@3"] == 1
    assert q1.scores["f1"] == q1.scores["answer_recall@3"] == q1.scores["path_f1"] == 1
    assert q1.lost == "kept"

    q3 = found["q3"]  # an inverse step
    assert q3.path is not None
    assert q3.path.relations == ("~flows_through",)
    assert q3.path.relation_labels == ("crossed by",)
    assert q3.scores["path_hit@3"] == 1

    q4 = found["q4"]  # the answer is not in the graph, and nothing leaves the start
    assert q4.provenance == "abstained"
    assert q4.gold.in_graph is False
    assert set(q4.scores.values()) == {0.0, 1.0}  # grounded, but wrong in all else
    assert q4.scores["grounding_strict"] == 1
    assert q4.scores["hits@1"] == q4.scores["f1"] == q4.scores["sbert@0.3"] == 0
    assert "path_hit@3" not in q4.scores

    q5 = found["q5"]  # no ids: an alias of the answer entity is accepted
    assert q5.answer == "Paris"
    assert q5.gold.in_graph is None
    assert q5.scores["exact_match"] == 0  # the text itself is not accepted,
    assert q5.scores["hits@1"] == q5.scores["f1"] == q5.scores["answer_recall@3"] == 1  # its entity's name is

    q6 = found["q6"]  # answered from the picture
    assert (q6.answer, q6.provenance, q6.path) == ("a flag", "image_only", None)
    assert q6.scores["hits@1"] == q6.scores["path_hit@3"] == q6.scores["path_f1"] == 0
    assert q6.lost == "untraced"
    assert q6.cost.vlm_calls == 1

    assert found["q7"].scores == {}  # nothing to compare with
    assert found["q8"].scores["answer_recall@3"] == 0.75  # four countries, three ranks
    assert found["q8"].scores["f1"] == pytest.approx(8 / 9)  # and a river that is located there too


def test_granted_start_and_depth_reach_the_system(
    toy_graph: KnowledgeGraph, questions: list[Question]
) -> None:
    asked = [q for q in questions if q.id != "q7"]
    walker = WordWalker(toy_graph)
    found = by_id(evaluate(walker, asked, toy_graph, ENCODER, grant_start=True, grant_depth=True))
    assert found["q6"].scores["hits@1"] == 1
    assert [query.topic for query in walker.asked] == [
        toy_graph.entity_index(q.topic_entity or "") for q in asked
    ]
    assert [query.depth for query in walker.asked] == [q.hops for q in asked]
    bare = WordWalker(toy_graph)
    evaluate(bare, asked, toy_graph, ENCODER)
    assert {(query.topic, query.depth) for query in bare.asked} == {(None, None)}


def test_what_cannot_be_granted_fails_and_counts(
    toy_graph: KnowledgeGraph, questions: list[Question]
) -> None:
    found = by_id(evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, grant_start=True))
    assert found["q7"].provenance == "failed"
    assert "topic_entity" in found["q7"].statement
    with pytest.raises(ConfigError, match="topic_entity"):
        evaluate(WordWalker(toy_graph), questions[6:7], toy_graph, ENCODER, grant_start=True)
    with pytest.raises(ConfigError, match="hops"):
        evaluate(WordWalker(toy_graph), questions[6:7], toy_graph, ENCODER, grant_depth=True)


def test_a_damaged_picture_is_a_miss_not_an_end(
    toy_graph: KnowledgeGraph, questions: list[Question], toy_folder: Path
) -> None:
    (toy_folder / "images" / "fr.png").write_bytes(b"no picture")
    evaluation = evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER)
    found = by_id(evaluation)
    assert found["q6"].provenance == "failed"
    assert found["q6"].scores["hits@1"] == 0
    assert len(found) == len(questions)
    assert tables(evaluation)["abstention"]["failed"] == 1 / 9  # type: ignore[index]


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_the_batch_size_changes_nothing(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path, batch_size: int
) -> None:
    file = tmp_path / "predictions.jsonl"
    found = evaluate(
        WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=batch_size, predictions=file
    )
    whole = evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=9)
    assert found.records == whole.records
    assert without_cost(tables(found)) == without_cost(tables(whole))
    assert tuple(read_records(file)) == whole.records


def test_a_killed_run_goes_on_where_it_stopped(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    fresh, killed = tmp_path / "fresh.jsonl", tmp_path / "killed.jsonl"
    evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=2, predictions=fresh)
    dying = Dying(toy_graph)
    with pytest.raises(KeyboardInterrupt):
        evaluate(dying, questions, toy_graph, ENCODER, batch_size=2, predictions=killed)
    assert [r.id for r in read_records(killed)] == ["q1", "q2", "q3", "q4"]
    with killed.open("a") as file:
        file.write('{"id": "q5", "torn')
    walker = WordWalker(toy_graph)
    resumed = evaluate(walker, questions, toy_graph, ENCODER, batch_size=2, predictions=killed, resume=True)
    assert len(walker.asked) == 5
    assert killed.read_bytes() == fresh.read_bytes()
    whole = evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER)
    assert without_cost(tables(resumed)) == without_cost(tables(whole))
    assert resumed.records == whole.records


def test_failed_questions_are_asked_again(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "predictions.jsonl"
    tired = Tired(toy_graph)
    first = evaluate(tired, questions, toy_graph, ENCODER, predictions=file)
    assert {r.provenance for r in first.records} == {"failed"}
    assert first.records[0].scores["hits@1"] == 0
    tired.awake = True
    second = evaluate(tired, questions, toy_graph, ENCODER, predictions=file, resume=True)
    assert len(tired.asked) == 18
    assert second.records[0].scores["hits@1"] == 1


def test_lines_of_other_conditions_are_not_kept(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "predictions.jsonl"
    evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, predictions=file, run_key="a")
    changed = [replace(questions[0], answers=("Bern",), answer_ids=("ber",)), *questions[1:]]
    walker = WordWalker(toy_graph)
    evaluate(walker, changed, toy_graph, ENCODER, predictions=file, resume=True, run_key="a")
    assert [query.text for query in walker.asked] == [questions[0].text]
    assert "1 of 9 lines" in caplog.text
    for other in (WordWalker(toy_graph, "another"), WordWalker(toy_graph)):
        key = "a" if other.name == "another" else "b"
        evaluate(other, changed, toy_graph, ENCODER, predictions=file, resume=True, run_key=key)
        assert len(other.asked) == 9


def test_without_resume_the_file_starts_anew(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "predictions.jsonl"
    for asked in (questions, questions[:3]):
        evaluate(WordWalker(toy_graph), asked, toy_graph, ENCODER, predictions=file)
    assert [r.id for r in read_records(file)] == ["q1", "q2", "q3"]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "predictions.jsonl"
    file.write_text('{"id": "q1"}\n')
    with pytest.raises(DataError, match=r"predictions.jsonl, line 1: \w+: Field required"):
        read_records(file)
    file.write_text("no json\n")
    with pytest.raises(DataError, match="line 1"):
        read_records(file)


def test_a_path_whose_labels_are_not_all_there_is_refused_with_its_line(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "predictions.jsonl"
    evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, predictions=file)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    number = next(i for i, line in enumerate(lines) if line["path"] is not None)
    lines[number]["path"]["entity_labels"].pop()
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(DataError, match=f"line {number + 1}: path.*a label for each"):
        read_records(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"confidence": math.nan}, "confidence nan"),
        ({"confidence": 1.5}, "confidence 1.5"),
        ({"answer": ""}, "expected an answer"),
        ({"answer": "Paris", "provenance": "abstained"}, "expected no answer"),
        ({"provenance": "guessed"}, "provenance 'guessed'"),
        ({"ranked": (12,)}, "expected 0 to 11"),
        ({"answer_entity": -1}, "expected 0 to 11"),
    ],
)
def test_what_is_no_prediction_is_refused(
    toy_graph: KnowledgeGraph, questions: list[Question], changes: dict[str, object], message: str
) -> None:
    with pytest.raises(PredictionError, match=message):
        evaluate(Changed(WordWalker(toy_graph), **changes), questions[:1], toy_graph, ENCODER)


def test_a_system_must_answer_each_question(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    class Lazy(WordWalker):
        def answer(self, queries: Sequence[Query]) -> list[Prediction]:
            return super().answer(queries)[1:]

    with pytest.raises(PredictionError, match="8 predictions for 9 questions"):
        evaluate(Lazy(toy_graph), questions, toy_graph, ENCODER)


def test_bad_calls_are_refused(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    with pytest.raises(ConfigError, match="no questions"):
        evaluate(WordWalker(toy_graph), [], toy_graph, ENCODER)
    with pytest.raises(ConfigError, match="batch_size=0"):
        evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=0)
    with pytest.raises(DataError, match="'q1'"):
        evaluate(WordWalker(toy_graph), [questions[0], questions[0]], toy_graph, ENCODER)


def test_an_answer_that_is_no_text_is_still_written(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "predictions.jsonl"
    odd = Changed(WordWalker(toy_graph), answer="Par\ud800is\u2028\n", statement="\udfff")
    found = evaluate(odd, questions[:1], toy_graph, ENCODER, predictions=file)
    assert found.records[0].answer == "Par?is\u2028\n"
    assert tuple(read_records(file)) == found.records


def test_usage_is_counted_from_the_start_of_the_evaluation(
    toy_graph: KnowledgeGraph, questions: list[Question]
) -> None:
    walker = WordWalker(toy_graph)
    evaluate(walker, questions[:4], toy_graph, ENCODER)
    found = evaluate(
        walker,
        questions,
        toy_graph,
        ENCODER,
        usage=lambda: {"requests": 2 * len(walker.asked), "cache_hits": len(walker.asked)},
    )
    assert (found.requests, found.cache_hits) == (18, 9)
