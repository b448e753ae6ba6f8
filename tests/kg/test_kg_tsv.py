from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import DataError
from vispath_lit.kg.faults import Faults
from vispath_lit.kg.tsv import escape, join_aliases, read_table, split_aliases, unescape, write_table

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
TRICKY = st.text(st.sampled_from("a\\|tnrb\t\n\r\u2028é"), max_size=10)


def column(texts: list[str]) -> object:
    return pa.array(texts, type=pa.large_string())


def slow_unescape(field: str) -> str | None:
    """Character by character; None for an escape that means nothing."""
    meaning, out, signs = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}, "", iter(field)
    for sign in signs:
        if sign != "\\":
            out += sign
        elif (after := next(signs, "")) in meaning:
            out += meaning[after]
        else:
            return None
    return out


def slow_split(field: str) -> list[str] | None:
    meaning, parts, signs = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\", "|": "|"}, [""], iter(field)
    for sign in signs:
        if sign == "|":
            parts.append("")
        elif sign != "\\":
            parts[-1] += sign
        elif (after := next(signs, "")) in meaning:
            parts[-1] += meaning[after]
        else:
            return None
    return list(dict.fromkeys(part for part in parts if part))


@given(st.lists(TRICKY, min_size=1, max_size=5))
def test_unescape_equals_reading_sign_by_sign(fields: list[str]) -> None:
    decoded, bad = unescape(column(fields))
    for field, got, wrong in zip(fields, decoded.to_pylist(), bad, strict=True):
        expected = slow_unescape(field)
        assert bool(wrong) == (expected is None)
        if expected is not None:
            assert got == expected


@given(st.lists(TRICKY, min_size=1, max_size=5))
def test_split_aliases_equals_reading_sign_by_sign(fields: list[str]) -> None:
    decoded, bad = split_aliases(column(fields))
    for field, got, wrong in zip(fields, decoded.to_pylist(), bad, strict=True):
        expected = slow_split(field)
        assert bool(wrong) == (expected is None)
        if expected is not None:
            assert got == expected


@given(st.lists(st.one_of(TRICKY, TEXT).filter(bool), unique=True, max_size=4))
def test_aliases_come_back(aliases: list[str]) -> None:
    decoded, bad = split_aliases(column([join_aliases(aliases)]))
    assert not bad.any()
    assert decoded.to_pylist() == [aliases]


@settings(max_examples=50)
@given(rows=st.lists(st.tuples(TEXT | TRICKY, TEXT | TRICKY), min_size=1, max_size=6))
def test_a_written_table_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.tsv"
    write_table(path, ("id", "label"), ([escape(a), escape(b)] for a, b in rows))
    table = read_table(path, ("id", "label"), (), Faults().add)
    for i, name in enumerate(("id", "label")):
        assert unescape(table.columns[name])[0].to_pylist() == [row[i] for row in rows]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_line_ends_marks_and_blank_lines(tmp_path: Path, end: str, mark: str, last: bool) -> None:
    path = tmp_path / "a.tsv"
    text = mark + end.join(["label\tid\textra", 'one "x\t1\t', "", "zwei\t2\tz"]) + end * last
    path.write_bytes(text.encode())
    table = read_table(path, ("id", "label"), ("type",), Faults().add)
    assert table.columns["id"].to_pylist() == ["1", "2"]
    assert table.columns["label"].to_pylist() == ['one "x', "zwei"]
    assert table.columns["type"].to_pylist() == ["", ""]
    assert (table.extra, table.absent) == (("extra",), ("type",))
    assert table.lines([0, 1]) == [2, 4]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"a\tb\tc", "found 3 columns, expected 2"),
        (b"a", "found 1 column, expected 2"),
        (b"a\tb\xff", "byte 0xff at character 4 is not valid UTF-8"),
        (b"a\0\tb", "NUL byte at character 2"),
    ],
)
def test_malformed_lines_are_named_or_left_out(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(b"id\tlabel\n1\tone\n" + line + b"\n\n2\ttwo\n")
    with pytest.raises(DataError, match=f"a.tsv, line 3: {reason}"):
        read_table(path, ("id", "label"), (), Faults().add)
    faults = Faults("skip")
    table = read_table(path, ("id", "label"), (), faults.add)
    assert table.columns["id"].to_pylist() == ["1", "2"]
    assert table.lines([1]) == [5]
    assert faults.counts["a.tsv"] == 1
    assert reason in faults.listed[0]


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vispath_lit.kg.tsv.MAX_LINE", 50)
    path = tmp_path / "a.tsv"
    path.write_bytes(b"id\tlabel\n1\tone\n2\t" + b"x" * 1000 + b"\n3\n4\tfour\n")
    faults = Faults("skip")
    table = read_table(path, ("id", "label"), (), faults.add)
    assert table.columns["id"].to_pylist() == ["1", "4"]
    assert table.dropped == {3, 4}
    assert "longer than 50" in faults.listed[0]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", "the file is empty"),
        (b"id\tname\n", "column label is missing in 'id\\\\tname'"),
        (b"id\tlabel\tid\n", "column id appears twice"),
        (b"id\tlabel\xff\n", "not valid UTF-8"),
    ],
)
def test_headers(tmp_path: Path, header: bytes, reason: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(header)
    with pytest.raises(
        DataError, match=f"line 1: .*{reason}.*expected a header line with the columns id, label"
    ):
        read_table(path, ("id", "label"), (), Faults("skip").add)


@pytest.mark.parametrize("row", [["a"], ["a\t", "b"], ["a", "b\n"]])
def test_a_row_that_does_not_fit_is_not_written(tmp_path: Path, row: list[str]) -> None:
    with pytest.raises(DataError, match="does not fit"):
        write_table(tmp_path / "a.tsv", ("id", "label"), [row])
    assert not (tmp_path / "a.tsv").exists()
