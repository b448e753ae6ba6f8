"""Question files: JSON Lines, one question a line (DESIGN section 3).

Fields: `id`, `question`, and optionally `image` (path or null), `answers`, `answer_ids`, `topic_entity`,
`gold_paths` (`[[[relation, entity], ...], ...]`), `hops`, `split`, `tags`. Others are kept in `meta`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from vispath_lit.data.lines import numbered_lines
from vispath_lit.errors import DataError
from vispath_lit.kg.images import is_there
from vispath_lit.types import GoldPath, Question
from vispath_lit.whole import whole_file

MAX_LINE = 8 << 20  # Bytes; a longer line is refused, so that a broken file cannot fill the memory.
_OPTIONAL = ("answers", "answer_ids", "topic_entity", "gold_paths", "hops", "split", "tags")
FIELDS = frozenset(("id", "question", "image", *_OPTIONAL))


def read_questions(
    path: str | Path, *, check_images: bool = False, limit: int | None = None
) -> list[Question]:
    """Reads a question file; an image path is resolved against the file's folder.

    Args:
        check_images: also require that each image exists.
        limit: only the first so many questions.

    Raises:
        DataError: no such file, or a line that is not a question; names file, line and field.
    """
    file = Path(path).absolute()
    if not file.is_file():
        raise DataError(f"{file}: no such question file; expected JSON Lines, one question a line")
    questions: list[Question] = []
    seen: dict[str, int] = {}
    for number, text in islice(_lines(file), limit):
        line = _Line(file, number, _parse(file, number, text))
        question = _question(line, check_images)
        if question.id in seen:
            line.fail("id", f"{question.id!r} was used in line {seen[question.id]}; ids are unique")
        seen[question.id] = number
        questions.append(question)
    if not questions and limit != 0:
        raise DataError(f"{file}: no question in the file; expected one JSON object a line")
    return questions


def write_questions(path: str | Path, questions: Iterable[Question]) -> None:
    """Writes a question file; images inside its folder are written relative to it, others absolute.

    Raises:
        DataError: a repeated id, or a `meta` key that is the name of a field.
    """
    file = Path(path).absolute()
    seen: set[str] = set()
    with whole_file(file) as partial, partial.open("w", encoding="utf8", newline="\n") as out:
        for question in questions:
            if question.id in seen:
                raise DataError(f"{file}: id {question.id!r} appears twice; ids are unique")
            seen.add(question.id)
            record = _record(question, file.parent)
            out.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def _record(question: Question, folder: Path) -> dict[str, object]:
    if clash := sorted(FIELDS & question.meta.keys()):
        raise DataError(f"question {question.id!r}: meta key {clash[0]!r} is the name of a field; rename it")
    image = question.image
    if image is not None and image.is_relative_to(folder):
        image = image.relative_to(folder)
    optional: dict[str, object] = {
        "answers": list(question.answers),
        "answer_ids": list(question.answer_ids),
        "topic_entity": question.topic_entity,
        "gold_paths": [[list(step) for step in path] for path in question.gold_paths],
        "hops": question.hops,
        "split": question.split,
        "tags": list(question.tags),
    }
    return {
        "id": question.id,
        "question": question.text,
        "image": None if image is None else image.as_posix(),
        **{key: value for key, value in optional.items() if value not in (None, [])},
        **question.meta,
    }


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    for number, line in numbered_lines(file, MAX_LINE, "; is this JSON Lines?"):
        if stripped := line.strip():
            yield number, stripped


def _parse(file: Path, number: int, text: bytes) -> dict[str, Any]:
    try:
        record = json.loads(
            text.decode("utf8"),
            parse_constant=_refuse_constant,
            parse_float=_finite,
            object_pairs_hook=_unique_keys,
        )
        if b"\\u" in text:  # JSON can spell half of a surrogate pair, which no file can hold.
            json.dumps(record, ensure_ascii=False).encode("utf8")
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{file}, line {number}: not valid JSON in UTF-8 ({error}); expected one question object a line"
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"{file}, line {number}: found a JSON {_kind(record)}, expected an object with id and question"
        )
    return record


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record: dict[str, object] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"field {key[:80]!r} appears twice")
        record[key] = value
    return record


def _kind(value: object) -> str:
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}
    return names.get(type(value), "null")


@dataclass(frozen=True, slots=True)
class _Line:
    """One parsed line; its readers name file, line and field when a value does not fit."""

    file: Path
    number: int
    record: dict[str, Any]

    def fail(self, field: str, reason: str) -> NoReturn:
        raise DataError(f"{self.file}, line {self.number}, field {field}: {reason}")

    def text(self, field: str) -> str:
        if field not in self.record:
            self.fail(field, "missing; every question needs it")
        return self._text(field, self.record[field])

    def optional_text(self, field: str) -> str | None:
        value = self.record.get(field)
        return None if value is None else self._text(field, value)

    def texts(self, field: str) -> tuple[str, ...]:
        values = self._list(field, self.record.get(field), "a list of strings")
        return tuple(self._text(field, value) for value in values)

    def positive(self, field: str) -> int | None:
        value = self.record.get(field)
        if value is None:
            return None
        if type(value) is not int or value < 1:
            self.fail(field, f"found {value!r:.80}, expected a whole number of at least 1")
        return value

    def gold_paths(self) -> tuple[GoldPath, ...]:
        field, shape = "gold_paths", "a list of paths, each a list of [relation, entity] steps"
        paths = self._list(field, self.record.get(field), shape)
        return tuple(self._gold_path(field, path, shape) for path in paths)

    def _gold_path(self, field: str, path: object, shape: str) -> GoldPath:
        steps = self._list(field, path, shape)
        if not steps:
            self.fail(field, f"found an empty path, expected {shape}")
        result = []
        for step in steps:
            if not isinstance(step, list) or len(step) != 2:
                self.fail(field, f"found the step {step!r:.80}, expected [relation, entity]")
            result.append((self._text(field, step[0]), self._text(field, step[1])))
        return tuple(result)

    def _list(self, field: str, value: object, shape: str) -> list[object]:
        if value is None:
            return []
        if not isinstance(value, list):
            self.fail(field, f"found a {_kind(value)}, expected {shape}")
        return value

    def _text(self, field: str, value: object) -> str:
        if not isinstance(value, str):
            self.fail(field, f"found a {_kind(value)} ({value!r:.80}), expected a string")
        if not value.strip() or "\0" in value:
            self.fail(field, "found an empty string" if not value.strip() else "found a NUL character")
        return value


def _question(line: _Line, check_images: bool) -> Question:
    return Question(
        id=line.text("id"),
        text=line.text("question"),
        image=_image(line, check_images),
        answers=line.texts("answers"),
        answer_ids=line.texts("answer_ids"),
        topic_entity=line.optional_text("topic_entity"),
        gold_paths=line.gold_paths(),
        hops=line.positive("hops"),
        split=line.optional_text("split"),
        tags=line.texts("tags"),
        meta={key: value for key, value in line.record.items() if key not in FIELDS},
    )


def _image(line: _Line, check: bool) -> Path | None:
    written = line.optional_text("image")
    if written is None:
        return None
    image = line.file.parent / written
    if check and not is_there(image):
        line.fail("image", f"{image} does not exist; paths are relative to the question file")
    return image
