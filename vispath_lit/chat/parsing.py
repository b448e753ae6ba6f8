"""From what a model wrote to the object that was asked for; what is not valid is told in words."""

from __future__ import annotations

import json
from typing import Any

import json_repair
from pydantic import BaseModel, ValidationError

from vispath_lit.types import ReplyT

MAX_ANSWER = 200_000  # characters; longer texts are no answer to any step
MAX_BRACKETS = 500  # opened in a text that is repaired
END_OF_THOUGHT = "</think>"  # what stands before it is no part of the answer
MAX_QUOTED = 500  # characters of an error that is quoted back


class InvalidAnswerError(Exception):
    """A model's text is not of the shape that was asked for; says what is wrong."""


def parse(text: str, shape: type[ReplyT]) -> ReplyT:
    """The answer as an object, its JSON repaired where that is possible.

    Raises:
        InvalidAnswerError: nothing in the text has the shape.
    """
    if len(text) > MAX_ANSWER:
        raise InvalidAnswerError(f"the answer has {len(text)} characters, at most {MAX_ANSWER} are read")
    text = text.rpartition(END_OF_THOUGHT)[2]
    try:
        return shape.model_validate_json(text)
    except ValidationError as error:
        first = _told(error)
    repaired = _repaired(text)
    if repaired is None:
        raise InvalidAnswerError(first)
    try:
        return shape.model_validate(repaired)
    except ValidationError as error:
        raise InvalidAnswerError(_told(error)) from error


def _repaired(text: str) -> dict[str, Any] | None:
    """The JSON object that the text was meant to hold: in a fence, cut short, with a comma too many."""
    if text.count("{") + text.count("[") > MAX_BRACKETS:  # Repairing is quadratic in their depth.
        return None
    try:
        found = json_repair.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, list):  # Some models wrap the one object that they were asked for.
        objects = [one for one in found if isinstance(one, dict)]
        found = objects[-1] if objects else None
    return found if isinstance(found, dict) else None


def _told(error: ValidationError) -> str:
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or "the answer"
    return f"{place}: {first['msg']}"[:MAX_QUOTED]


def json_schema(shape: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of an answer as strict servers want it: every key required, no other key allowed."""
    schema = shape.model_json_schema()
    _tighten(schema)
    return schema


def schema_text(shape: type[BaseModel]) -> str:
    """The schema in one line, the same in every process."""
    return json.dumps(json_schema(shape), sort_keys=True, ensure_ascii=False)


def _tighten(node: object) -> None:
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node["additionalProperties"] = False
            node["required"] = list(node["properties"])
        node.pop("default", None)
        for value in node.values():
            _tighten(value)
    elif isinstance(node, list):
        for value in node:
            _tighten(value)
