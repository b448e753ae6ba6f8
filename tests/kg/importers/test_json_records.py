"""Arrays of JSON objects, read piece by piece, hold what a reader of the whole file finds."""

from __future__ import annotations

import io
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.kg.staging import records
from vispath_lit.kg.staging.streams import Member
from vispath_lit.kg.staging.tally import Tally

OBJECTS = st.lists(
    st.dictionaries(
        st.text('ab\u00e9\u4e2d"\\]},[{ \n', max_size=3), st.integers() | st.text(max_size=3), max_size=3
    ),
    max_size=8,
)


def read(data: bytes) -> list[tuple[int, dict[str, object]]]:
    member = Member("a.json", "a.json", io.BytesIO(data))
    return [one for part in records.records(member) for one in part.load(Tally("fail"))]


@settings(max_examples=60, deadline=None)
@given(OBJECTS, st.sampled_from([None, 1]), st.integers(1, 30))
def test_an_array_reads_as_a_whole_in_any_pieces(
    objects: list[dict[str, object]], indent: int | None, chunk: int
) -> None:
    data = (" " + json.dumps(objects, ensure_ascii=False, indent=indent) + "\n").encode("utf8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "CHUNK", chunk)
        assert read(data) == list(enumerate(objects, 1))


def test_many_small_objects_take_no_longer_each() -> None:
    count = 60_000
    data = json.dumps([{"number": i} for i in range(count)]).encode()
    begin = time.process_time()
    found = read(data)
    assert time.process_time() - begin < 5  # a copy of the rest for each one takes many times as long
    assert found[-1] == (count, {"number": count - 1})
