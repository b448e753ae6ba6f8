from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import DataError
from vispath_lit.kg.staging import streams
from vispath_lit.kg.staging.lines import fields, whole_lines
from vispath_lit.kg.staging.streams import Block, Member, walk
from vispath_lit.kg.staging.tally import Tally

TEXT = b"one\ttwo\nthree\tfour\n" * 500


def packed(folder: Path, name: str) -> Path:
    """A file that holds TEXT in the form its name says."""
    path = folder / name
    if name.endswith((".tar", ".tar.gz", ".tar.bz2")):
        mode = "w:" + name.rpartition(".tar")[2].removeprefix(".")
        with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
            info = tarfile.TarInfo("inside/file.txt")
            info.size = len(TEXT)
            archive.addfile(info, io.BytesIO(TEXT))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("inside/file.txt", TEXT)
    else:
        forms = {".gz": gzip.compress(TEXT), ".bz2": bz2.compress(TEXT), ".xz": lzma.compress(TEXT)}
        path.write_bytes(forms.get(path.suffix, TEXT))
    return path


FORMS = ["a.txt", "a.txt.gz", "a.txt.bz2", "a.txt.xz", "a.tar", "a.tar.gz", "a.tar.bz2", "a.zip"]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_reads_the_same(tmp_path: Path, name: str) -> None:
    path = packed(tmp_path, name)
    found = [b"".join(block.data for block in member.blocks(100)) for member in walk(path)]
    assert found == [TEXT]
    path = path.rename(tmp_path / "without_ending")  # Contents tell the form, not the name.
    assert [b"".join(block.data for block in member.blocks()) for member in walk(path)] == [TEXT]


@pytest.mark.parametrize("name", FORMS[1:])
@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_archive_is_named(tmp_path: Path, name: str, damage: str) -> None:
    path = packed(tmp_path, name)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[max(len(data) // 4, 40) :]
    elif name == "a.tar":
        data[0] ^= 1  # Its checksum covers the header alone.
    else:
        for at in range(len(data) // 2, len(data) // 2 + 12):
            data[at] ^= 0x5A
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{name}.*damaged or cut short.*fetch it again"):
        [list(member.blocks()) for member in walk(path)]


def test_a_folder_is_walked_with_the_archives_in_it(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    packed(tmp_path / "sub", "a.tar.gz")
    packed(tmp_path, "b.txt.gz")
    assert [member.name for member in walk(tmp_path)] == ["b.txt", "sub/inside/file.txt"]
    with pytest.raises(DataError, match="no such file or folder"):
        list(walk(tmp_path / "absent"))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_LINE", 1000)
    (tmp_path / "a").write_bytes(b"short\n" + b"x" * 5000)
    with pytest.raises(DataError, match="a, line 2: longer than 1000 bytes"):
        [list(member.blocks(100)) for member in walk(tmp_path / "a")]


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)),
    st.integers(1, 30),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_blocks_hold_all_lines_with_their_numbers(
    lines: list[str], size: int, end: str, last_ends: bool
) -> None:
    data = end.join(lines) + (end if last_ends and lines else "")
    member = Member("m", "m", io.BytesIO(b"\xef\xbb\xbf" + data.encode()))
    found: dict[int, str] = {}
    for block in member.blocks(size):
        assert block.data.endswith(b"\n")
        for offset, line in enumerate(block.data.decode().split("\n")[:-1]):
            found[block.line + offset] = line
    expected = {i: line for i, line in enumerate(lines, start=1) if line}
    assert {i: line.removesuffix("\r") for i, line in found.items() if line.strip("\r")} == {
        i: line for i, line in expected.items() if line.strip("\r")
    }


ROWS = st.lists(
    st.one_of(
        st.just(b""),
        st.lists(
            st.one_of(
                st.text(st.characters(exclude_characters="\t\r\n\0", exclude_categories=["Cs"])).map(
                    str.encode
                ),
                st.sampled_from([b"\xff", b"a\0b", b"\r", b'"', b"'", b"\\", b"\x01"]),
            ),
            min_size=1,
            max_size=4,
        ).map(b"\t".join),
    ),
    max_size=12,
)


def usable(row: bytes) -> bool:
    try:
        row.decode()
    except UnicodeDecodeError:
        return False
    return row.count(b"\t") == 2 and b"\0" not in row and b"\r" not in row


@given(ROWS)
@settings(max_examples=60, deadline=None)
def test_rows_equal_those_of_a_slow_reader(lines: list[bytes]) -> None:
    """Good rows are kept with their lines, bad ones counted, blank ones neither."""
    tally = Tally("skip")
    rows = fields(Block(b"".join(line + b"\n" for line in lines), "s", 7), 3, tally)
    good = [(7 + i, line.decode().split("\t")) for i, line in enumerate(lines) if line and usable(line)]
    assert list(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == [
        tuple(values) for _, values in good
    ]
    assert rows.lines.tolist() == [number for number, _ in good]
    assert sum(tally.skipped.values()) == sum(1 for line in lines if line) - len(good)


def test_faults_are_told_apart() -> None:
    tally = Tally("skip")
    fields(Block(b"a\tb\nok\tok\tok\n\xff\tb\tc\na\0\tb\tc\n\na\r\tb\tc\n", "file", 1), 3, tally)
    assert dict(tally.skipped) == {
        "wrong number of columns": 1,
        "not UTF-8": 1,
        "NUL byte": 1,
        "carriage return inside a line": 1,
    }
    assert tally.listed[0] == "file, line 1: wrong number of columns (2, expected 3)"
    with pytest.raises(DataError, match=r"file, line 3: not UTF-8 .byte 0xff at byte 1.*--on-error skip"):
        fields(Block(b"a\tb\tc\n\n\xff\tb\tc\n", "file", 1), 3, Tally("fail"))


def test_whole_lines_keep_tabs_and_control_characters() -> None:
    rows = whole_lines(Block(b"a\tb\x01c\n\nd\n", "file", 1), Tally())
    assert (rows.columns[0].to_pylist(), rows.lines.tolist()) == (["a\tb\x01c", "d"], [1, 3])
