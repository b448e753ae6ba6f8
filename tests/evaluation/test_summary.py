"""Tables: averages by hand, denominators that no prediction changes, comparison, the same bytes twice."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import TrigramEncoder, WordWalker, toy_questions
from rich.console import Console

from vispath_lit.errors import DataError
from vispath_lit.evaluation.comparison import assemble, compare
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.files import write_json
from vispath_lit.evaluation.summary import tables, without_cost
from vispath_lit.evaluation.tables import markdown, rows, table
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Prediction, Query, Question

ENCODER = TrigramEncoder()


class Silent:
    """Abstains, always."""

    name = "silent"

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        return [Prediction("", None, "abstained") for _ in queries]


@pytest.fixture
def questions(toy_folder: Path) -> list[Question]:
    return toy_questions(toy_folder)


@pytest.fixture
def walked(toy_graph: KnowledgeGraph, questions: list[Question]) -> Evaluation:
    return evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER)


@pytest.fixture
def weaker(toy_graph: KnowledgeGraph, questions: list[Question]) -> Evaluation:
    return evaluate(WordWalker(toy_graph, "weaker", inverse=False), questions, toy_graph, ENCODER)


def whole(walked: Evaluation, weaker: Evaluation) -> dict[str, Any]:
    return dict(
        assemble(
            {"given_nothing": walked, "given_start": walked},
            data="toy",
            split="test",
            fingerprints={"graph": "ab"},
            fixed={"given_nothing": weaker, "given_start": weaker},
        )
    )


def test_averages_by_hand(walked: Evaluation) -> None:
    found: dict[str, Any] = tables(walked)
    hits = {r.id: r.scores["hits@1"] for r in walked.records if r.id != "q7"}
    assert hits == {"q1": 1, "q2": 1, "q3": 1, "q4": 0, "q5": 1, "q6": 0, "q8": 1, "q9": 1}
    assert found["overall"]["hits@1"] == pytest.approx(6 / 8)
    assert found["overall"]["path_hit@3"] == pytest.approx(6 / 7)
    assert found["by_hop"]["2"] == {
        **found["by_hop"]["2"],
        "questions": 2,
        "hits@1": 1.0,
        "path_hit@3": 1.0,
    }
    assert found["by_hop"]["1"]["questions"] == 6
    assert found["by_hop"]["unknown"] == {"questions": 1}
    assert found["by_tag"]["place"]["questions"] == 2
    assert found["by_tag"]["picture"]["hits@1"] == 0
    assert found["not_in_graph"]["questions"] == 1
    assert found["not_in_graph"]["hits@1"] == 0
    assert found["grounding"]["strict"] == pytest.approx(7 / 8)
    assert found["grounding"]["questions"] == 8
    assert found["grounding"]["by_kind"] == {}  # France has a flag and an outline: nobody can tell
    assert found["abstention"] == {
        "abstained": pytest.approx(1 / 9),
        "failed": 0.0,
        "hits@1_when_answered": pytest.approx(6 / 7),
        "provenance": {"stopped": 7, "abstained": 1, "image_only": 1},
    }
    assert found["pruned"]["questions"] == 7
    assert (found["pruned"]["kept"], found["pruned"]["untraced"]) == (6, 1)
    assert found["cost"]["llm_calls"] == 1
    assert found["cost"]["vlm_calls"] == pytest.approx(1 / 9)
    assert found["memory"]["peak_rss_mb"] > 10


def test_grounding_is_told_by_kind_of_picture(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    """By the question's tag, else by the graph where all pictures of the start are of one kind."""
    flags = [replace(questions[5], tags=("picture", "image:flag")), replace(questions[5], topic_entity="de")]
    asked = [replace(question, id=f"k{i}") for i, question in enumerate([*questions, *flags])]
    found: dict[str, Any] = tables(evaluate(WordWalker(toy_graph), asked, toy_graph, ENCODER))
    assert found["grounding"]["by_kind"] == {
        "flag": {"questions": 2, "strict": 0.0, "soft": 0.0, "recall@5": 0.0}
    }


def test_no_prediction_changes_a_denominator(
    toy_graph: KnowledgeGraph, questions: list[Question], walked: Evaluation
) -> None:
    silent: dict[str, Any] = tables(evaluate(Silent(), questions, toy_graph, ENCODER))
    spoken: dict[str, Any] = tables(walked)
    for part in ("by_hop", "by_tag"):
        assert {k: v["questions"] for k, v in silent[part].items()} == {
            k: v["questions"] for k, v in spoken[part].items()
        }
    assert silent["overall"].keys() == spoken["overall"].keys()
    assert silent["pruned"]["questions"] == spoken["pruned"]["questions"] == 7
    zeros = {name for name, value in silent["overall"].items() if value == 0}
    assert zeros == silent["overall"].keys() - {"questions", "sbert@0.3_chance"}
    assert silent["abstention"]["abstained"] == 1
    first = evaluate(Silent(), questions, toy_graph, ENCODER).records
    assert [r.scores.keys() for r in first] == [r.scores.keys() for r in walked.records]


def test_comparison_is_paired_by_question(walked: Evaluation, weaker: Evaluation) -> None:
    found: dict[str, Any] = compare(walked.records, weaker.records)
    lost = {r.id for r in weaker.records if r.scores.get("hits@1") == 0}
    assert {"q3", "q8", "q9"} <= lost
    expected = sum(
        a.scores["hits@1"] - b.scores["hits@1"]
        for a, b in zip(walked.records, weaker.records, strict=True)
        if a.id != "q7"
    )
    difference = found["overall"]["hits@1"]
    assert difference["difference"] == pytest.approx(expected / 8)
    assert difference["low"] <= difference["difference"] <= difference["high"]
    assert 0 < difference["p"] <= 1
    assert found["by_hop"]["2"]["hits@1"]["difference"] == pytest.approx(0.5)
    with pytest.raises(DataError, match="not about the same questions"):
        compare(walked.records, weaker.records[:3])


def test_metrics_hold_all_that_is_promised(walked: Evaluation, weaker: Evaluation) -> None:
    found = whole(walked, weaker)
    promised = {"system", "data", "split", "questions", "overall", "by_hop", "by_tag", "grounding"}
    assert promised | {"calibration", "cost", "fingerprints", "fixed", "given_start"} <= found.keys()
    keys = {"sbert@0.3", "exact_match", "hits@1", "f1", "answer_recall@3", "path_hit@3", "path_f1"}
    for part in (found, found["fixed"], found["given_start"], found["fixed"]["given_start"]):
        assert keys <= part["overall"].keys()
        costs = {"llm_calls", "vlm_calls", "vlm_forwards", "text_tokens", "seconds", "requests", "cache_hits"}
        assert costs == part["cost"].keys()
    assert found["system"] == "walker"
    assert found["fixed"]["system"] == "weaker"
    assert found["given_start"]["comparison"]["overall"].keys() == found["comparison"]["overall"].keys()
    with pytest.raises(DataError, match="no protocol"):
        assemble({}, data="toy", split="test", fingerprints={})


def test_a_main_table_that_grants_something_says_so_and_is_shown_once(
    walked: Evaluation, weaker: Evaluation
) -> None:
    fixed = {"given_start": weaker}
    found: Any = assemble({"given_start": walked}, data="toy", split="test", fingerprints={}, fixed=fixed)
    assert found["main"] == "given_start"
    assert found["overall"] == found["given_start"]["overall"]
    assert {row.protocol for row in rows(found)} == {"start given"}
    assert rows(found)[-1].cells[0].fixed == found["fixed"]["given_start"]["overall"]["hits@1"]


def test_the_same_seed_gives_the_same_bytes(
    toy_graph: KnowledgeGraph,
    questions: list[Question],
    walked: Evaluation,
    weaker: Evaluation,
    tmp_path: Path,
) -> None:
    again = evaluate(WordWalker(toy_graph), questions, toy_graph, ENCODER, batch_size=2)
    write_json(tmp_path / "a.json", without_cost(whole(walked, weaker)))
    write_json(tmp_path / "b.json", without_cost(whole(again, weaker)))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    kept = json.loads((tmp_path / "a.json").read_text())
    assert "cost" not in kept
    assert "memory" not in kept["fixed"]["given_start"]


def test_tables_for_people(walked: Evaluation, weaker: Evaluation) -> None:
    found = whole(walked, weaker)
    assert [(row.protocol, row.group) for row in rows(found)] == [
        ("", "1"),
        ("", "2"),
        ("", "unknown"),
        ("", "all"),
        ("start given", "1"),
        ("start given", "2"),
        ("start given", "unknown"),
        ("start given", "all"),
    ]
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(table(found))
    printed = console.export_text()
    assert "Hits@1" in printed
    assert f"{100 * found['fixed']['overall']['hits@1']:.1f} → 75.0" in printed
    text = markdown(found)
    assert "| all | 9 | Hits@1 |" in text
    assert len({line.count("|") for line in text.splitlines()}) == 1
    alone = dict(assemble({"given_nothing": walked}, data="toy", split="[/test]\x1b[2J", fingerprints={}))
    assert "| all | 9 | Hits@1 |  | 75.0 [" in markdown(alone)
    console.print(table(alone))
    printed = console.export_text()
    assert "→" not in printed
    assert r"[/test]\x1b[2J" in printed


def test_a_pair_counts_where_both_of_its_questions_are_right(
    toy_graph: KnowledgeGraph, questions: list[Question], walked: Evaluation
) -> None:
    assert "pairs" not in tables(walked)
    right = [record.scores.get("hits@1") == 1.0 for record in walked.records]
    good, bad = (
        right.index(True),
        next(i for i, record in enumerate(walked.records) if record.scores.get("hits@1") == 0.0),
    )
    second = next(i for i, hit in enumerate(right) if hit and i != good)
    pairs = {good: "a", second: "a", bad: "b"}
    paired = [replace(q, meta={**q.meta, "pair": pairs.get(i, "b")}) for i, q in enumerate(questions)]
    assert list(pairs.values()).count("b") < len(paired) - 2
    found = tables(evaluate(WordWalker(toy_graph), paired, toy_graph, ENCODER))
    assert found["pairs"] == {"pairs": 2, "hits@1": 0.5}
    lone = [replace(q, meta={"pair": str(i)}) for i, q in enumerate(questions)]
    assert "pairs" not in tables(evaluate(WordWalker(toy_graph), lone, toy_graph, ENCODER))
