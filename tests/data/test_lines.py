from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vispath_lit.data.lines import MARK, numbered_lines
from vispath_lit.errors import DataError


@given(lines=st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b" "))), mark=st.booleans())
def test_lines_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], mark: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "lines.txt"
    file.write_bytes(MARK * mark + b"".join(line + b"\n" for line in lines))
    found = list(numbered_lines(file, 20))
    expected = [(number, line + b"\n") for number, line in enumerate(lines, 1)]
    if not mark and lines:
        expected[0] = (1, expected[0][1].removeprefix(MARK))
    if mark and not lines:
        expected = [(1, b"")]
    assert found == expected


def test_a_line_without_end_is_refused_in_time(tmp_path: Path) -> None:
    file = tmp_path / "flat.json"
    file.write_bytes(b"one\n" + b"x" * 1_000_000)
    lines = numbered_lines(file, 100, "; is this JSON Lines?")
    assert next(lines) == (1, b"one\n")
    with pytest.raises(DataError, match=r"flat\.json, line 2: longer than 100 bytes; is this JSON Lines\?"):
        next(lines)
