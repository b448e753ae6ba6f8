"""The commands of docs/reproduce.md name keys and choices that there are."""

from __future__ import annotations

import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from vispath_lit.launch.config import load_config

PAGE = Path(__file__).parents[2] / "docs" / "reproduce.md"


def commands() -> list[list[str]]:
    """The overrides of each command that runs a system."""
    lines = PAGE.read_text(encoding="utf8").replace("\\\n", " ").splitlines()
    split = [shlex.split(line) for line in lines if line.startswith("    ") and " | " not in line]
    runs = [words[2:] for words in split if words[:2] == ["python", "eval.py"]]
    tables = [words for words in split if words[:3] == ["vispath", "report", "table"]]
    sets = [[b for a, b in pairwise(words) if a == "--set"] for words in tables]
    return runs + sets


@pytest.mark.parametrize("overrides", commands(), ids=" ".join)
def test_a_command_composes(overrides: list[str]) -> None:
    config = load_config("eval", overrides)
    assert config.chat.name != "none"
    assert config.parts.search._target_


def test_both_kinds_of_commands_are_found() -> None:
    assert len(commands()) >= 7
    assert any("data=vispath_bench" in one and "chat=openai" in one for one in commands())
