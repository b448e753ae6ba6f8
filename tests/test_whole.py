from __future__ import annotations

from pathlib import Path

import pytest

from vispath_lit.whole import folder_beside, whole_file


def test_a_file_is_whole_or_as_it_was(tmp_path: Path) -> None:
    place = tmp_path / "new" / "answers.jsonl"
    with whole_file(place) as partial:
        partial.write_text("first")
        assert partial.parent == place.parent
        assert not place.exists()
    assert place.read_text() == "first"

    def half() -> None:
        with whole_file(place) as partial:
            partial.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert place.read_text() == "first"
    assert list(place.parent.iterdir()) == [place]


def test_a_block_that_writes_nothing_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_longest_names_have_room(tmp_path: Path) -> None:
    for place in (tmp_path / ("a" * 255), tmp_path / ("\N{GRINNING FACE}" * 63)):
        with whole_file(place) as partial:
            partial.write_text("x")
        assert place.read_text() == "x"


def test_two_may_write_one_place_at_once(tmp_path: Path) -> None:
    place = tmp_path / "a.npy"
    with whole_file(place) as one, whole_file(place) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert place.read_text() == "one"
    assert list(tmp_path.iterdir()) == [place]


def test_a_folder_leaves_nothing_beside(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "store"
    with folder_beside(place) as partial:
        (partial / "part").write_text("x")
        (partial / "rest").write_text("y")
        (partial / "part").rename(place.parent / "part")
    assert [path.name for path in place.parent.iterdir()] == ["part"]
    with folder_beside(place) as partial:
        (partial / "inner").mkdir()
        partial.rename(place)
    assert (place / "inner").is_dir()
    assert sorted(path.name for path in place.parent.iterdir()) == ["part", "store"]
