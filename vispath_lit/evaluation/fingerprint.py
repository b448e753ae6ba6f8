"""The content of questions as short hashes, so that a result names what it was computed from."""

from __future__ import annotations

import json
from collections.abc import Iterable

import xxhash

from vispath_lit.types import Question


def question_fingerprint(question: Question) -> str:
    """A hash of all that is asked and accepted; the picture counts by its bytes, not by its name or place."""
    content = [
        question.id,
        question.text,
        question.answers,
        question.answer_ids,
        question.topic_entity,
        question.gold_paths,
        question.hops,
        question.tags,
        *([question.meta["scoring"]] if "scoring" in question.meta else []),
    ]
    hashed = xxhash.xxh3_128(json.dumps(content, ensure_ascii=False).encode("utf8", "surrogatepass"))
    if question.image is None:
        hashed.update(b"\0none")
    elif question.image.is_file():
        hashed.update(b"\0" + question.image.read_bytes())
    else:
        hashed.update(b"\0missing")
    return hashed.hexdigest()


def questions_fingerprint(questions: Iterable[Question]) -> str:
    """A hash of the questions in their order."""
    return xxhash.xxh3_128("\n".join(question_fingerprint(q) for q in questions).encode()).hexdigest()
