"""Checks the values that a user may set against the types that the code declares for them."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from vispath_lit.errors import ConfigError

# Values of a run that no class of its own checks: what is allowed, in words and as a test.
Rule = tuple[str, Callable[[Any], bool]]
SEED_LIMIT = 2**32
CHOOSERS = ("path_hit@3", "hits@1", "answer_recall@3")


def _whole(value: object, low: int, high: float = float("inf")) -> bool:
    return type(value) is int and low <= value < high


_POSITIVE_OR_NULL: Rule = ("a whole number of at least 1, or null", lambda v: v is None or _whole(v, 1))
_SWITCH: Rule = ("true or false", lambda v: isinstance(v, bool))
_TEXT: Rule = ("a text", lambda v: isinstance(v, str) and bool(v.strip()) and "\0" not in v)
_TEXT_OR_NULL: Rule = ("a path, or null", lambda v: v is None or _TEXT[1](v))
RULES: dict[str, Rule] = {
    "seed": ("a whole number from 0 to 4294967295", lambda v: _whole(v, 0, SEED_LIMIT)),
    "threads": _POSITIVE_OR_NULL,
    "device": ("auto, cpu, cuda or the like", _TEXT[1]),
    "data.split": _TEXT,
    "data.limit": _POSITIVE_OR_NULL,
    "data.train_limit": _POSITIVE_OR_NULL,
    "run_dir": _TEXT,
    "cache_dir": _TEXT,
    "ckpt_path": _TEXT_OR_NULL,
    "transfer": _SWITCH,
    "fit": _SWITCH,
    "compare_fixed": _SWITCH,
    "training.batch_size": ("a whole number of at least 1", lambda v: _whole(v, 1)),
    "training.val_questions": ("a whole number of at least 1", lambda v: _whole(v, 1)),
    "training.weak_workers": _POSITIVE_OR_NULL,
    "training.keep_every": ("a whole number of at least 1", lambda v: _whole(v, 1)),
    "training.on_error": ("fail or skip", lambda v: v in ("fail", "skip")),
    "training.best_by": ("one of " + ", ".join(CHOOSERS) + ", or null", lambda v: v is None or v in CHOOSERS),
    "trainer.max_epochs": ("a whole number of at least 1", lambda v: _whole(v, 1)),
    "given": (
        "a list such as [nothing, start]",
        lambda v: not isinstance(v, str) and hasattr(v, "__iter__"),
    ),
}


def check_run(config: DictConfig) -> None:
    """Checks a run's own values before anything is read or written.

    Raises:
        ConfigError: names the key, the value found and what is allowed.
    """
    for key, (expected, allowed) in RULES.items():
        node: Any = config
        *path, last = key.split(".")
        for name in path:
            node = node.get(name) if isinstance(node, DictConfig) else None
        if not isinstance(node, DictConfig) or last not in node:
            continue
        try:
            value = node[last]
        except OmegaConfBaseException as error:
            raise ConfigError(f"{key} cannot be resolved: {first_line(error)}") from error
        if not allowed(value):
            raise ConfigError(f"{key} is {value!r}; expected {expected}")


def check_values(cls: Callable[..., Any], values: Mapping[str, object], name: str) -> None:
    """Checks plain values against the annotations of a constructor; what they leave open is allowed.

    Raises:
        ConfigError: names the parameter, the value found and the type expected.
    """
    function = cls.__init__ if inspect.isclass(cls) else cls
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError):  # An annotation that only a type checker can see.
        return
    for key, value in values.items():
        if key in hints and not fits(value, hints[key]):
            raise ConfigError(f"{name}: {key} is {value!r:.200}; expected {words(hints[key])}")


def fits(value: object, hint: Any) -> bool:
    """Whether a plain value is of a type; True where the type is no plain one."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in get_args(hint))
    if origin is Literal:
        return any(value == option and type(value) is type(option) for option in get_args(hint))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return type(value) is int
    if hint in (bool, str, NoneType):
        return isinstance(value, hint)
    return not (hint is Path and not isinstance(value, (str, Path)))


def words(hint: Any) -> str:
    """A type as a user knows it."""
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(words(option) for option in get_args(hint))
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    known = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", Path: "a path"}
    return "null" if hint is NoneType else known.get(hint, getattr(hint, "__name__", str(hint)))


def first_line(error: BaseException) -> str:
    """The first line of an error's message, its type where it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
