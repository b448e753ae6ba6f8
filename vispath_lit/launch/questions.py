"""The questions of a run: one split, the first N of it."""

from __future__ import annotations

from vispath_lit.errors import ConfigError
from vispath_lit.launch.parts import World
from vispath_lit.types import Question


def split_questions(world: World, split: str, limit: int | None) -> list[Question]:
    """The first `limit` questions of a split, all where it is None.

    Raises:
        ConfigError: a limit below 1.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"a limit of {limit} questions: expected at least 1, or null for all")
    assert world.source is not None, "only runs over a data set have splits"
    return world.source.questions(split)[:limit]
