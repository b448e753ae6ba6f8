"""Questions for the prompted system, a model that knows what each is about, and a plan of what goes wrong."""

from __future__ import annotations

import json
import math
import re
import shutil
import threading
from collections import Counter
from hashlib import blake2b
from pathlib import Path
from typing import Any

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
PASSING = ("429", "500", "reset", "cut", "html")  # what the next attempt mends
SPOILT = ("broken", "schema")  # what asking again in words mends
TOKENS = 18  # that the server counts for each whole answer
USED = ("ok", *SPOILT, "huge")  # what comes back whole, and is kept
# Seconds that a client waits, and that the server keeps it waiting. An answer that a busy machine gives too
# late would be one that nobody used, and would be paid for twice.
TIMEOUT, LATE = 12.0, 13.0


def questions(folder: Path, count: int) -> Path:
    """The planets' questions over and over, each with its own number in its words."""
    shutil.copytree(PLANETS / "questions_images", folder / "questions_images")
    lines = (PLANETS / "questions.jsonl").read_text(encoding="utf8").splitlines()
    known = [json.loads(line) for line in lines]
    asked = []
    for number in range(count):
        one = known[number % len(known)]
        words = f"Question {number}. {one['question']}"
        asked.append(one | {"id": f"q{number}", "question": words, "split": "test"})
    file = folder / "questions.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf8")
    return file


def overrides(folder: Path, run: str, url: str, *more: str) -> list[str]:
    """`python eval.py parts=prompted chat=openai ...` over `folder/questions.jsonl`."""
    return [
        "parts=prompted",
        "data=custom",
        f"data.graph={PLANETS / 'graph'}",
        f"data.questions={folder / 'questions.jsonl'}",
        "given=[nothing]",
        f"cache_dir={folder / run / 'cache'}",
        f"run_dir={folder / run}",
        "chat=openai",
        f"chat.base_url={url}",
        "chat.model=m",
        f"chat.timeout={TIMEOUT}",
        "chat.max_wait=0.3",
        "chat.attempts=9",
        "system.batch_size=50",
        *more,
    ]


def say(body: dict[str, Any]) -> str:
    """What a model says; its final answer repeats the question's number, so that no two can be mixed up."""
    number = _number(body) or 0
    answers: dict[str, dict[str, Any]] = {
        "Reference": {"expression": "what is shown", "head": "planet"},
        "Sketch": {"relations": ["orbits"], "depth": 1 + number % 2},
        "Recognised": {"name": "Mars"},
        "Ranking": {"ranking": [1, 2]},
        "Intent": {"intent": "what it orbits"},
        "Chosen": {"keep": [1, 2]},
        "Statement": {"statement": f"It is the {number}th."},
        "Verdict": {"answerable": True, "answer": "Sun"},
        "Answer": {"answer": f"No. {number}"},
        "Verified": {"choice": 1},
    }
    return json.dumps(answers[_step(body)])


class Mischief:
    """What the server does with a request, by its content and how often it came: whatever order threads have.

    Three of ten requests meet one or two passing faults, one of ten gets an answer of no use. Two sketches
    get 10 MB, and two time out.
    """

    def __init__(self, late: bool = True) -> None:
        self._late = late  # whether any times out
        self.came: Counter[str] = Counter()
        self.kept: Counter[str] = Counter()  # answers that a client can have kept, by the request's content
        self.huge: list[dict[str, Any]] = []  # requests that got 10 MB
        self._lock = threading.Lock()

    def __call__(self, number: int, body: dict[str, Any]) -> str:
        content = json.dumps(body["messages"])
        with self._lock:
            before = self.came[content]
            self.came[content] += 1
            fault = self._fault(body, content, before)
            if fault in USED:
                self.kept[content] += 1
            if fault == "huge":
                self.huge.append(body)
        return fault

    def _fault(self, body: dict[str, Any], content: str, before: int) -> str:
        lot = int.from_bytes(blake2b(content.encode(), digest_size=8).digest(), "big")
        again = len(body["messages"]) > 2  # asked once more in words: a second useless answer is a fallback
        number = _number(body) if _step(body) == "Sketch" and not again else None
        if self._late and number in (3, 33) and before == 0:
            return "timeout"
        if number in (4, 34):
            return "huge"
        if lot % 10 < 3 and before <= lot % 2:
            return PASSING[lot // 10 % len(PASSING)]
        return SPOILT[lot // 10 % len(SPOILT)] if lot % 10 == 3 and not again else "ok"


def tokens_of_huge(body: dict[str, Any]) -> int:
    """What an answer that is cut off is counted as: characters of the prompt by four, the answer's limit."""
    return math.ceil(len(_words(body, "")) / 4) + int(body["max_tokens"])


def _number(body: dict[str, Any]) -> int | None:
    """Which question a request is about, where it tells."""
    found = re.search(r"Question (\d+)\.", _words(body))
    return int(found[1]) if found else None


def _step(body: dict[str, Any]) -> str:
    return str(body["response_format"]["json_schema"]["name"])


def _words(body: dict[str, Any], between: str = "\n") -> str:
    """All texts of a request; pictures are left out."""
    contents = [one["content"] for one in body["messages"]]
    parts = [[{"text": one}] if isinstance(one, str) else one for one in contents]
    return between.join(part.get("text", "") for one in parts for part in one)
