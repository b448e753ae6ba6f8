"""A question as its file tells it and as a system sees it; what is known of it before any search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Literal

from PIL.Image import Image

GoldPath = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One line of a question file (DESIGN section 3). Only data, training and evaluation see it.

    Attributes:
        image: absolute path of the picture, or None.
        answers: accepted strings; empty where the file holds none (prediction only).
        gold_paths: per path the (relation id, entity id) steps from the topic; a relation id that
            starts with `~` is walked backwards.
    """

    id: str
    text: str
    image: FilePath | None = None
    answers: tuple[str, ...] = ()
    answer_ids: tuple[str, ...] = ()
    topic_entity: str | None = None
    gold_paths: tuple[GoldPath, ...] = ()
    hops: int | None = None
    split: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """All that a system may know of a question: its words, its pixels, and what a protocol grants.

    Attributes:
        topic: the start entity, in the "given start" tables only.
        depth: the number of hops, in the "gold depth given" rows only.
    """

    text: str
    image: Image | None = None
    topic: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the words of a question tell before any search.

    Attributes:
        expression: the words that refer to the image ("the country whose flag is shown").
        head: their bare head noun ("country"); all that recognition may use (Eq. 1).
        sketch: the coarse relation-level plan S_Q as text; empty where there is none.
        depth: probability of 1, 2, ... D_max hops.
    """

    expression: str
    head: str
    sketch: str
    depth: tuple[float, ...]

    @property
    def hops(self) -> int:
        """The predicted depth D^ >= 1: the most probable one, the smaller on a tie."""
        return max(range(len(self.depth)), key=lambda i: (self.depth[i], -i)) + 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible start entity, with the score and the origin that brought it here."""

    entity: int
    score: float
    origin: Literal["topic", "image", "name"]
