"""A whole run of the prompted system against a local server that misbehaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from misbehaving import serve
from omegaconf import OmegaConf

from vispath_lit.errors import ConfigError
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.parts import section
from vispath_lit.launch.testing import _with_totals

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
KEY = "sk-not-to-be-written-anywhere"
ANSWERS: dict[str, dict[str, Any]] = {
    "Reference": {"expression": "the planet shown", "head": "planet"},
    "Sketch": {"relations": ["orbits"], "depth": 2},
    "Recognised": {"name": "Mars"},
    "Ranking": {"ranking": [1, 2]},
    "Intent": {"intent": "what it orbits"},
    "Chosen": {"keep": [1, 2]},
    "Statement": {"statement": "The planet orbits the Sun."},
    "Verdict": {"answerable": True, "answer": "Sun"},
    "Answer": {"answer": "Sun"},
    "Verified": {"choice": 1},
}


def say(body: dict[str, Any]) -> str:
    return json.dumps(ANSWERS[body["response_format"]["json_schema"]["name"]])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def run(folder: Path, url: str, *more: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """`python eval.py parts=prompted chat=openai ...`; its metrics and predictions."""
    overrides = [
        "parts=prompted",
        "data=custom",
        f"data.graph={PLANETS / 'graph'}",
        f"data.questions={PLANETS / 'questions.jsonl'}",
        "data.split=train",
        f"cache_dir={folder / 'cache'}",
        f"run_dir={folder / 'run'}",
        "chat=openai",
        f"chat.base_url={url}",
        "chat.model=m",
        "chat.max_wait=1",
        *more,
    ]
    evaluate_run(load_config("eval", overrides), overrides)
    metrics = json.loads((folder / "run" / "metrics.json").read_text(encoding="utf8"))
    lines = (folder / "run" / "predictions.jsonl").read_text(encoding="utf8").splitlines()
    return metrics, [json.loads(line) for line in lines]


def test_what_the_server_received_is_what_is_reported(tmp_path: Path) -> None:
    faults = ("ok", "ok", "429", "ok", "reset", "ok", "500", "ok", "cut", "ok", "schema", "ok", "broken")
    with serve(say, lambda number, body: faults[number % len(faults)]) as server:
        metrics, predictions = run(tmp_path, server.url, "given=[nothing,start]")
        assert metrics["cost"]["requests"] == server.log.requests > 40
        assert len(predictions) == metrics["questions"] == 11
        spent = sum(table["cost"]["text_tokens"] for table in (metrics, metrics["given_start"]))
        assert spent > 0
        assert metrics["cost"]["chat"]["tokens"] == server.log.tokens
    for one in predictions:
        assert one["provenance"] in ("stopped", "terminal", "fallback", "image_only")
        assert one["cost"]["llm_calls"] >= 3
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_a_model_that_is_not_named_is_said() -> None:
    with pytest.raises(ConfigError, match=r"^chat\.model is not set: say chat\.model=VALUE$"):
        section(load_config("eval", ["chat=openai"]).chat.backend)


def test_a_server_that_is_down_fails_every_question_until_it_is_back(tmp_path: Path) -> None:
    down = True
    with serve(say, lambda number, body: "500" if down else "ok") as server:
        metrics, predictions = run(tmp_path, server.url, "given=[nothing]", "chat.attempts=1")
        assert [one["provenance"] for one in predictions] == ["failed"] * 11
        assert all("status 500" in one["statement"] and one["answer"] == "" for one in predictions)
        assert metrics["cost"]["requests"] == server.log.requests == 11, "a question is given up at once"
        assert metrics["abstention"]["failed"] == 1
        down = False
        metrics, predictions = run(tmp_path, server.url, "given=[nothing]", "chat.attempts=1")
    assert len(predictions) == 11
    assert {one["answer"] for one in predictions} == {"Sun"}
    assert (
        metrics["cost"]["requests_of_all_sessions"] == server.log.requests == 11 + metrics["cost"]["requests"]
    )


def test_the_requests_of_several_processes_add_up() -> None:
    usages = [
        {"requests": 5, "cache_hits": 1, "tokens": 50, "earlier_requests": 7, "sketch.calls": 3},
        {"requests": 4, "cache_hits": 0, "tokens": 20, "earlier_requests": 7, "ranking.calls": 2},
    ]
    assert _with_totals({"llm_calls": 1.5, "requests": 0, "cache_hits": 0}, usages) == {
        "llm_calls": 1.5,
        "requests": 9,
        "cache_hits": 1,
        "requests_of_all_sessions": 16,
        "chat": {"requests": 9, "cache_hits": 1, "tokens": 70, "sketch.calls": 3, "ranking.calls": 2},
    }


def test_a_budget_fails_questions_and_a_rerun_goes_on_without_paying_twice(tmp_path: Path) -> None:
    with serve(say) as server:
        chosen = ("data.limit=6", "given=[nothing]")
        metrics, predictions = run(tmp_path, server.url, *chosen, "chat.max_calls=20")
        assert metrics["cost"]["requests"] == server.log.requests == 20
        failed = [one for one in predictions if one["provenance"] == "failed"]
        assert failed
        assert all(one["answer"] == "" and "chat.max_calls=20" in one["statement"] for one in failed)
        assert metrics["abstention"]["failed"] == len(failed) / 6
        metrics, predictions = run(tmp_path, server.url, *chosen)
        assert not [one for one in predictions if one["provenance"] == "failed"]
        again = metrics["cost"]["requests"]
        assert server.log.requests == 20 + again == metrics["cost"]["requests_of_all_sessions"]
        asked = [json.dumps(body, sort_keys=True) for body in server.log.bodies]
        assert len(set(asked)) == len(asked), "no answer was paid for twice"
        metrics, _ = run(tmp_path, server.url, *chosen)
        assert metrics["cost"]["requests"] == 0
        assert metrics["cost"]["requests_of_all_sessions"] == server.log.requests


@pytest.mark.parametrize("rival", ["omnisearch", "tog"])
def test_a_rival_asks_what_its_own_method_asks(rival: str, tmp_path: Path) -> None:
    """parts=prompted is VisPath's: a rival searches for starts and pictures, and every request is billed."""
    asked: list[str] = []
    own = {
        "Action": {"thought": "", "sub_question": "which?", "action": "search_by_picture", "words": ""},
        "Said": {"answer": "Sun"},
        "Picks": {"picks": [{"number": 1, "score": 1.0}]},
        "Verdict": {"sufficient": True, "answer": "Sun"},
    }

    def rivals_model(body: dict[str, Any]) -> str:
        asked.append(body["response_format"]["json_schema"]["name"])
        return json.dumps(own.get(asked[-1], {}))

    with serve(rivals_model) as server:
        _, predictions = run(tmp_path, server.url, f"system={rival}", "given=[nothing]")
    assert asked
    assert set(asked) <= set(own), "steps of VisPath"
    assert sum(one["cost"]["llm_calls"] + one["cost"]["vlm_calls"] for one in predictions) == len(asked)
    config = OmegaConf.load(tmp_path / "run" / "config.yaml")
    assert config.parts.grounder._target_.endswith("FixedGrounder"), "the record tells what answered"
