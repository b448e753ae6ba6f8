"""The errors that a user can mend. The command line prints them without a traceback and exits with 1."""

from __future__ import annotations

import math


class VisPathError(Exception):
    """Says what was found, what was expected and what to do next."""


class DataError(VisPathError):
    """A file or line of the user's data is not as it should be; names file and line."""


class UnknownEntityError(VisPathError):
    """An entity or relation id that the graph does not hold."""


class CheckpointError(VisPathError):
    """A checkpoint that is damaged, or was trained on another graph."""


class ConfigError(VisPathError):
    """A value or a combination of values that cannot work; names the key and what is allowed."""


class EngineError(VisPathError):
    """Workers of an engine that did not start, or were lost."""


class ChatError(VisPathError):
    """A language model that gave no answer: a budget is used up, or its server gave out."""


def at_least(low: int, part: str, **values: float) -> None:
    """Refuses settings of a part below `low`, and numbers that are not finite.

    Raises:
        ConfigError: names the first such key, its value and what is allowed.
    """
    for key, value in values.items():
        if not low <= value < math.inf:
            raise ConfigError(f"{part}.{key} is {value}; expected at least {low}")
