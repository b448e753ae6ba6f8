"""The shapes of reply that several rivals ask for, and how a model's words and numbers are read."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

MAX_TEXT = 2_000  # characters of a model's text that are shown again


class Said(BaseModel):
    """An answer in words."""

    answer: str


class Verdict(BaseModel):
    """Whether the evidence is enough, and the answer if it is."""

    sufficient: bool
    answer: str


class Told(BaseModel):
    """A text in words."""

    text: str


class Numbers(BaseModel):
    """A choice from a numbered list, the best first."""

    numbers: list[int]


class Names(BaseModel):
    """Names of things."""

    names: list[str]


def plain(text: str) -> str:
    """A model's words on one line, not too long, free of what no tokenizer takes (lone surrogates)."""
    return " ".join(text[:MAX_TEXT].encode("utf8", "replace").decode("utf8").split())


def numbered(texts: Sequence[str]) -> list[dict[str, object]]:
    """The texts as items with numbers from 1, by which a model names them."""
    return [{"number": number, "text": text} for number, text in enumerate(texts, 1)]


def chosen(numbers: Sequence[int], count: int, most: int) -> list[int]:
    """Positions from 0 that a model named by numbers from 1, in its order; what is not listed is dropped."""
    return list(dict.fromkeys(number - 1 for number in numbers if 1 <= number <= count))[:most]
