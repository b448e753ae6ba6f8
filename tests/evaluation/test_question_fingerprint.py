"""Two questions have one hash where all that is asked and accepted is the same."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from vispath_lit.evaluation import fingerprint
from vispath_lit.evaluation.fingerprint import question_fingerprint
from vispath_lit.types import Question


def pictured(image: Path | None) -> str:
    return question_fingerprint(Question("q", "Which?", image=image))


def test_a_picture_counts_by_its_bytes(tmp_path: Path) -> None:
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    one.write_bytes(b"picture" * 1000)
    same.write_bytes(b"picture" * 1000)
    other.write_bytes(b"picture" * 1000 + b".")
    marks = [pictured(place) for place in (one, same, other, tmp_path / "none", None)]
    assert marks[0] == marks[1]
    assert len(set(marks)) == 4


def test_a_large_picture_is_hashed_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(bytes(range(256)) * 40)
    whole = pictured(small)
    monkeypatch.setattr(fingerprint, "PIECE", 1000)
    assert pictured(small) == whole
    monkeypatch.undo()
    with large.open("wb") as file:
        file.truncate(64 << 20)
    tracemalloc.start()
    pictured(large)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20


def test_a_picture_that_cannot_be_opened_ends_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pictured(tmp_path / ("x" * 300)) == pictured(tmp_path / "none")
    file = tmp_path / "picture"
    file.write_bytes(b"picture")

    def refuse(self: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    before = pictured(file)
    monkeypatch.setattr(Path, "open", refuse)
    assert pictured(file) not in (before, pictured(tmp_path / "none"))
