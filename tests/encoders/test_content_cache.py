from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vispath_lit.encoders import cache as cache_module
from vispath_lit.encoders.cache import ContentCache, content_keys
from vispath_lit.encoders.segment import MAGIC, Keys, Segment, build, merge, spans

WIDTH = 3


def keys_of(*numbers: int) -> Keys:
    return content_keys(str(n).encode() for n in numbers)


def rows_of(*numbers: int) -> NDArray[np.float32]:
    return np.array([[n, n + 0.5, -n] for n in numbers], dtype=np.float32)


def filled(folder: Path | None, *numbers: int) -> ContentCache:
    cache = ContentCache(folder, WIDTH, np.float32)
    cache.add(keys_of(*numbers), rows_of(*numbers))
    cache.flush()
    return cache


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


def test_vectors_come_back_in_the_order_asked(tmp_path: Path) -> None:
    filled(tmp_path, *range(10))
    rows, lengths = ContentCache(tmp_path, WIDTH, np.float32).get(keys_of(7, 99, 0, 7))
    assert lengths.tolist() == [1, 0, 1, 1]
    np.testing.assert_array_equal(rows, rows_of(7, 0, 7))


def test_items_of_several_rows(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path, WIDTH, np.float16)
    lengths = np.array([2, 1, 3])
    cache.add(keys_of(1, 2, 3), rows_of(10, 11, 20, 30, 31, 32), lengths)
    cache.flush()
    rows, found = ContentCache(tmp_path, WIDTH, np.float16).get(keys_of(3, 4, 1))
    assert found.tolist() == [3, 0, 2]
    np.testing.assert_array_equal(rows, rows_of(30, 31, 32, 10, 11).astype(np.float16))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 15), st.integers(1, 3)), max_size=6), max_size=8),
    st.integers(1, 200),
)
def test_like_a_dict_in_which_the_first_value_stays(
    adds: list[list[tuple[int, int]]], flush_bytes: int
) -> None:
    oracle: dict[int, list[list[float]]] = {}
    cache = ContentCache(None, WIDTH, np.float32, flush_bytes)
    value = 0.0
    for items in adds:
        rows, lengths = [], []
        for number, length in items:
            made = [[value + i] * WIDTH for i in range(length)]
            value += length
            rows += made
            lengths.append(length)
            oracle.setdefault(number, made)
        keys = keys_of(*(number for number, _ in items))
        cache.add(
            keys, np.array(rows, dtype=np.float32).reshape(-1, WIDTH), np.array(lengths, dtype=np.int64)
        )
    found, lengths_found = cache.get(keys_of(*range(16)))
    assert lengths_found.tolist() == [len(oracle.get(n, [])) for n in range(16)]
    assert found.tolist() == [row for n in range(16) for row in oracle.get(n, [])]


def test_equal_first_halves_are_told_apart() -> None:
    keys = np.array([[5, 1], [5, 2], [5, 3], [9, 1]], dtype=np.uint64)
    segment = build(keys, np.ones(4, dtype=np.int64), rows_of(1, 2, 3, 4))
    wanted = np.array([[5, 3], [5, 4], [9, 1], [5, 1], [9, 9], [0, 0]], dtype=np.uint64)
    assert segment.locate(wanted).tolist() == [2, -1, 3, 0, -1, -1]


def test_merging_keeps_the_earlier_value() -> None:
    one = build(keys_of(1, 2), np.array([1, 1]), rows_of(1, 2))
    other = build(keys_of(2, 3), np.array([1, 1]), rows_of(20, 30))
    whole = merge([one, other])
    assert len(whole) == 3
    np.testing.assert_array_equal(whole.rows[whole.locate(keys_of(2))], rows_of(2))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=10))
def test_spans(pairs: list[tuple[int, int]]) -> None:
    oracle = [i for start, length in pairs for i in range(start, start + length)]
    starts = np.array([start for start, _ in pairs], dtype=np.int64)
    lengths = np.array([length for _, length in pairs], dtype=np.int64)
    assert spans(starts, lengths).tolist() == oracle


@pytest.mark.parametrize("place", ["magic", "header", "index", "rows", "cut", "empty", "longer"])
def test_a_damaged_file_is_ignored_aloud(
    tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    filled(tmp_path, 1, 2, 3)
    (file,) = segments(tmp_path)
    content = file.read_bytes()
    flips = {"magic": 0, "header": 20, "index": len(content) - 3 * 12 - 30, "rows": len(content) - 5}
    if place in flips:
        at = flips[place]
        content = content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
    file.write_bytes({"cut": content[:-1], "empty": b"", "longer": content + b"x"}.get(place, content))
    filled(tmp_path, 8)
    with caplog.at_level(logging.WARNING):
        cache = ContentCache(tmp_path, WIDTH, np.float32)
        rows, lengths = cache.get(keys_of(1, 8))
    assert lengths.tolist() == [0, 1]
    np.testing.assert_array_equal(rows, rows_of(8))
    assert "damaged" in caplog.text
    assert file.name in caplog.text


def test_what_cannot_be_opened_is_ignored_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, 1)
    (tmp_path / "0-folder.seg").mkdir()  # as good as one whose rights are another user's
    (tmp_path / "1-deep.seg").write_bytes(MAGIC + struct.pack("<I", 4000) + b"[" * 4000)
    with caplog.at_level(logging.WARNING):
        cache = ContentCache(tmp_path, WIDTH, np.float32)
    assert cache.get(keys_of(1))[1].tolist() == [1]
    assert "0-folder.seg" in caplog.text
    assert "1-deep.seg" in caplog.text


def test_vectors_of_another_width_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path, 1)
    with caplog.at_level(logging.WARNING):
        cache = ContentCache(tmp_path, WIDTH + 1, np.float32)
    assert cache.get(keys_of(1))[1].tolist() == [0]
    assert "expected float32 x 4" in caplog.text


def test_nothing_half_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "00-ab.1.tmp").write_bytes(b"half")
    assert ContentCache(tmp_path, WIDTH, np.float32).get(keys_of(1))[1].tolist() == [0]
    filled(tmp_path, 1)
    assert [path.suffix for path in segments(tmp_path)] == [".seg"]


def test_another_writer_is_seen_without_reopening(tmp_path: Path) -> None:
    reader = ContentCache(tmp_path, WIDTH, np.float32)
    assert reader.get(keys_of(1))[1].tolist() == [0]
    filled(tmp_path, 1)
    os.utime(tmp_path, ns=(1, 1))  # coarse clocks must not hide the change from this test
    assert reader.get(keys_of(1))[1].tolist() == [1]


def test_a_full_disk_at_the_end_is_told_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache_module, "write", full)
    cache = ContentCache(tmp_path, WIDTH, np.float32)
    cache.add(keys_of(1), rows_of(1))
    with pytest.raises(OSError, match="No space left"):  # in the middle of a run it is one
        cache.flush()
    with caplog.at_level(logging.WARNING):
        del cache
        gc.collect()
    assert "embedded again: [Errno 28] No space left" in caplog.text


def test_many_small_files_become_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MAX_FILES", 4)
    reader = ContentCache(tmp_path, WIDTH, np.float32)
    writer = ContentCache(tmp_path, WIDTH, np.float32)
    for n in range(12):
        writer.add(keys_of(n), rows_of(n))
        writer.flush()
    assert len(segments(tmp_path)) <= 5
    for cache in (reader, writer, ContentCache(tmp_path, WIDTH, np.float32)):
        rows, lengths = cache.get(keys_of(*range(12)))
        assert lengths.tolist() == [1] * 12
        np.testing.assert_array_equal(rows, rows_of(*range(12)))


def test_full_memory_is_written_without_a_call(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path, WIDTH, np.float32, flush_bytes=WIDTH * 4 * 3)
    for n in range(3):
        assert not segments(tmp_path)
        cache.add(keys_of(n), rows_of(n))
    assert len(segments(tmp_path)) == 1


def test_freeing_the_cache_writes_what_waits(tmp_path: Path) -> None:
    cache = ContentCache(tmp_path, WIDTH, np.float32)
    cache.add(keys_of(4), rows_of(4))
    del cache
    assert ContentCache(tmp_path, WIDTH, np.float32).get(keys_of(4))[1].tolist() == [1]


def _write_in_child(folder: str, first: int) -> None:
    cache = ContentCache(Path(folder), WIDTH, np.float32)
    for n in range(first, first + 30):
        cache.add(keys_of(n), rows_of(n))
        cache.flush()


def test_two_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_write_in_child, args=(str(tmp_path), n)) for n in (0, 20)]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    rows, lengths = ContentCache(tmp_path, WIDTH, np.float32).get(keys_of(*range(50)))
    assert lengths.tolist() == [1] * 50
    np.testing.assert_array_equal(rows, rows_of(*range(50)))


def test_an_empty_segment_holds_nothing() -> None:
    none = np.zeros(0, dtype=np.uint64)
    empty = Segment(none, none, np.zeros(1, dtype=np.int64), np.zeros((0, WIDTH), dtype=np.float32))
    assert empty.locate(keys_of(1, 2)).tolist() == [-1, -1]
