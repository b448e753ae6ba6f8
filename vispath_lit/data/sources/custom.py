"""A user's own graph folder (or built store) and question files."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Literal

from vispath_lit.data.questions import read_questions
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.cached import store_of
from vispath_lit.kg.faults import OnError
from vispath_lit.types import Question

SPLITS = ("train", "val", "test")


class Custom:
    """`data=custom data.graph=FOLDER data.questions=FILE`.

    Questions are split by their `split` field. A file without that field is split 8:1:1 by start entity (or
    by question where none is known), seeded, so that no start of a test question is seen in training.

    Args:
        graph: a graph folder with TSV files, or a built store.
        questions: a JSON Lines file, or a folder with `<split>.jsonl` files.
        cache_dir: where the store of a graph folder is kept, by the folder's content.
        on_error: `fail` stops at the first bad line of the graph, `skip` counts and lists them.
        seed: of the 8:1:1 split.
    """

    name = "custom"

    def __init__(
        self, graph: str, questions: str, cache_dir: str, on_error: OnError = "fail", seed: int = 0
    ) -> None:
        self.graph = _existing(graph, "data.graph")
        self.files = _existing(questions, "data.questions")
        self.cache = Path(cache_dir)
        self.on_error = on_error
        self.seed = seed

    def prepare(self) -> Path:
        return store_of(self.graph, self.cache, self.on_error)

    def questions(self, split: str) -> list[Question]:
        if self.files.is_dir():
            file = self.files / f"{split}.jsonl"
            return read_questions(file) if file.is_file() else []
        found = read_questions(self.files)
        if any(question.split for question in found):
            self._check_splits(found)
            return [question for question in found if question.split == split]
        return divide(found, self.seed).get(split, [])

    def _check_splits(self, found: list[Question]) -> None:
        """Refuses questions that would be in no split at all, as nobody would miss them."""
        left = [question.id for question in found if not question.split]
        if left:
            raise DataError(
                f"{self.files}: {len(left)} of {len(found)} questions have no split, first {left[0]!r}; "
                "give each of them one, or none of them"
            )


def divide(
    questions: list[Question], seed: int, by: Literal["topic_entity", "id"] = "topic_entity"
) -> dict[str, list[Question]]:
    """8:1:1 into train, val and test; questions with one start entity stay together unless divided by id.

    Fewer than ten groups still give every split at least one question where there are three groups.
    """
    groups: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        groups[getattr(question, by) or question.id].append(question)
    keys = sorted(groups)
    random.Random(seed).shuffle(keys)
    held_out = max(1, round(len(keys) / 10)) if len(keys) >= 3 else 0
    parts = {
        "test": keys[:held_out],
        "val": keys[held_out : 2 * held_out],
        "train": keys[2 * held_out :],
    }
    return {split: [q for key in parts[split] for q in groups[key]] for split in SPLITS}


def _existing(value: str, key: str) -> Path:
    if not value or value == "???":
        raise ConfigError(f"{key} is not set: say {key}=PATH")
    path = Path(value).expanduser().resolve()
    if not path.exists():
        raise DataError(f"{key}: {path} does not exist")
    return path
