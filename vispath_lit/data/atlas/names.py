"""The hand-written tables of `names.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


def names(section: str) -> dict[str, str]:
    """One table of names to names."""
    return {key: str(value) for key, value in _tables()[section].items()}


def namesakes() -> dict[str, tuple[str, str]]:
    """By the symbol of an element: type, and key or label, of what it is named after."""
    return {symbol: (type_, key) for symbol, (type_, key) in _tables()["namesakes"].items()}


def word_list(name: str) -> frozenset[str]:
    """One list of words."""
    return frozenset(_tables()["words"][name])


@cache
def _tables() -> dict[str, dict[str, Any]]:
    file = resources.files("vispath_lit.data.atlas").joinpath("names.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
