"""The content of questions as short hashes, so that a result names what it was computed from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import xxhash

from vispath_lit.kg.images import is_there
from vispath_lit.types import Question

PIECE = 1 << 20  # bytes


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
    elif is_there(question.image):
        hashed.update(b"\0")
        _add_file(hashed, question.image)
    else:
        hashed.update(b"\0missing")
    return hashed.hexdigest()


def _add_file(hashed: xxhash.xxh3_128, file: Path) -> None:
    """A piece at a time, as it may be large; one that may not be read fails its question alone."""
    try:
        with file.open("rb") as source:
            while piece := source.read(PIECE):
                hashed.update(piece)
    except OSError:
        hashed.update(b"unreadable")


def questions_fingerprint(questions: Iterable[Question]) -> str:
    """A hash of the questions in their order."""
    return xxhash.xxh3_128("\n".join(question_fingerprint(q) for q in questions).encode()).hexdigest()
