"""The whole prompted system on 200 questions, sixteen at once, against a server that misbehaves."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from misbehaving import Log, serve
from prompted_world import (
    LATE,
    PASSING,
    SPOILT,
    TOKENS,
    USED,
    Mischief,
    overrides,
    questions,
    say,
    tokens_of_huge,
)

from vispath_lit.chat.store import AnswerStore
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run

ROOT = Path(__file__).parents[2]
COUNT = 200
AT_ONCE = 16
PROVENANCES = {"stopped", "fallback", "terminal", "image_only", "abstained"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A finished run, and what its server saw."""

    folder: Path
    metrics: dict[str, Any]
    predictions: list[dict[str, Any]]
    log: Log
    mischief: Mischief


def read(folder: Path, log: Log, mischief: Mischief) -> Seen:
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf8"))
    lines = (folder / "predictions.jsonl").read_text(encoding="utf8").splitlines()
    return Seen(folder, metrics, [json.loads(line) for line in lines], log, mischief)


def evaluate(root: Path, run: str, *more: str) -> Seen:
    """A run in this process."""
    mischief = Mischief()
    with serve(say, mischief, hang=LATE) as server:
        asked = overrides(root, run, server.url, *more)
        evaluate_run(load_config("eval", asked), asked)
    return read(root / run, server.log, mischief)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("serving")
    questions(folder, COUNT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-of-nobody")
        yield folder


@pytest.fixture(scope="module")
def whole(root: Path) -> Seen:
    return evaluate(root, "whole")


def lasting(seen: Seen) -> list[dict[str, Any]]:
    """The predictions without what each run has of its own: its server's address, and seconds."""
    own = ("key", "cost")
    counts = [{**one["cost"], "seconds": 0} for one in seen.predictions]
    kept = [{key: value for key, value in one.items() if key not in own} for one in seen.predictions]
    return [one | {"cost": cost} for one, cost in zip(kept, counts, strict=True)]


def answered_whole(seen: Seen) -> int:
    return sum(seen.log.faults[kind] for kind in USED)


def test_every_question_has_its_own_prediction(whole: Seen) -> None:
    assert set(whole.log.faults) == {"ok", *PASSING, *SPOILT, "timeout", "huge"}
    assert sum(whole.log.faults[kind] for kind in (*PASSING, *SPOILT)) > 500
    assert [one["id"] for one in whole.predictions] == [f"q{n}" for n in range(COUNT)]
    assert [one["answer"] for one in whole.predictions] == [f"No. {n}" for n in range(COUNT)]
    assert {one["provenance"] for one in whole.predictions} <= PROVENANCES
    assert whole.metrics["questions"] == COUNT
    assert whole.metrics["abstention"]["failed"] == 0
    assert 2 <= whole.log.busiest <= AT_ONCE


def test_calls_and_tokens_are_those_of_the_server(whole: Seen) -> None:
    cost, log = whole.metrics["cost"], whole.log
    assert cost["requests"] == cost["requests_of_all_sessions"] == log.requests
    assert set(whole.mischief.kept.values()) == {1}, "nothing was paid for twice"
    # Equal requests are sent once and shared; each counts for the question that asked.
    calls = [one["cost"]["llm_calls"] + one["cost"]["vlm_calls"] for one in whole.predictions]
    assert sum(calls) == answered_whole(whole) + cost["cache_hits"]
    assert min(calls) >= 7
    assert cost["llm_calls"] + cost["vlm_calls"] == pytest.approx(sum(calls) / COUNT, abs=1e-5)
    cut = whole.mischief.huge
    assert len(cut) == log.faults["huge"] == 2
    assert cost["chat"]["tokens"] == log.tokens + sum(map(tokens_of_huge, cut))
    shared = TOKENS * cost["cache_hits"]
    assert sum(one["cost"]["text_tokens"] for one in whole.predictions) == cost["chat"]["tokens"] + shared
    assert not [key for key in cost["chat"] if key.endswith((".fallback", ".failed"))]


def test_the_first_40_questions(root: Path, whole: Seen) -> None:
    first = evaluate(root, "first", "data.limit=40")
    assert first.metrics["questions"] == len(first.predictions) == 40
    assert first.metrics["cost"]["requests"] == first.log.requests
    assert {"timeout", "reset", "429", "500", "cut"} <= set(first.log.faults)
    assert lasting(first) == lasting(whole)[:40]


def test_a_killed_run_goes_on(root: Path, whole: Seen) -> None:
    """No stored answer is asked for again, at most the sixteen under way are; its end is the whole run's."""
    mischief = Mischief(late=False)
    folder = root / "killed"
    with serve(say, mischief) as server:
        log = server.log
        asked = overrides(root, "killed", server.url)
        command = [sys.executable, str(ROOT / "eval.py"), *asked]
        there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
        killed = subprocess.Popen(command, env=there, cwd=root, stdout=subprocess.DEVNULL)
        while log.requests < 1_200 and killed.poll() is None:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        assert killed.wait() == -signal.SIGKILL
        while log.busy:  # what was under way arrives
            time.sleep(0.01)
        received, paid = log.requests, sum(mischief.kept.values())
        stored = AnswerStore(folder / "cache" / "chat").totals()
        lines = (folder / "predictions.jsonl").read_text(encoding="utf8").count("\n")
        assert 0 < lines < COUNT
        assert received <= stored["sent"] <= received + AT_ONCE
        assert 0 < stored["answers"] <= paid <= stored["answers"] + AT_ONCE
        evaluate_run(load_config("eval", asked), asked)
    seen = read(folder, log, mischief)
    assert sum(mischief.kept.values()) - len(mischief.kept) == paid - stored["answers"]
    assert seen.metrics["cost"]["requests"] == log.requests - received
    assert seen.metrics["cost"]["requests_of_all_sessions"] == stored["sent"] + log.requests - received
    end = AnswerStore(folder / "cache" / "chat").totals()
    assert end["sent"] == stored["sent"] + log.requests - received
    assert end["open"] == 0
    assert lasting(seen) == lasting(whole)
