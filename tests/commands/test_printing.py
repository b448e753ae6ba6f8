"""What commands print can be read by programs, whatever the output's encoding."""

from __future__ import annotations

import io
import json
import sys

import pytest

from vispath_lit.commands.printing import print_json, readable


@pytest.mark.parametrize("encoding", ["utf8", "cp1252", "ascii"])
def test_json_is_written_in_any_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"label": "Zürich \u2192 \u4e2d", "half": "\ud83d"}
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    print_json(found)
    sys.stdout.flush()
    assert json.loads(written.getvalue().decode(encoding)) == found


def test_half_characters_of_a_terminal_are_told_apart_from_none() -> None:
    assert readable("Z\udcfcrich \u4e2d") == "Z?rich \u4e2d"
