from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vispath_lit.kg.staging import vocabulary
from vispath_lit.kg.staging.vocabulary import Vocabulary


def few_hashes(column: pl.Series) -> NDArray[np.uint64]:
    """All texts share four hashes, which lie in a row at the end of the table."""
    return np.array([(len(text) % 4) + (1 << 40) - 2 for text in column], dtype=np.uint64)


@pytest.mark.parametrize("collide", [False, True])
@given(parts=st.lists(st.lists(st.text(max_size=3), max_size=20), max_size=5))
@settings(max_examples=30, deadline=None)
def test_it_numbers_as_a_dictionary_does(parts: list[list[str]], collide: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(vocabulary, "_hash", few_hashes)
        known = Vocabulary()
        oracle: dict[str, int] = {}
        for part in parts:
            column = pa.array(part, type=pa.large_string())
            assert known.find(column).tolist() == [oracle.get(text, -1) for text in part]
            expected = [oracle.setdefault(text, len(oracle)) for text in part]
            found = known.add(column).tolist()
            if collide:  # Collided texts are numbered after the others of their part.
                oracle = {text: i for i, text in enumerate(known.texts().to_pylist())}
                assert [oracle[text] for text in part] == found
            else:
                assert found == expected
        assert known.texts().to_pylist() == sorted(oracle, key=lambda text: oracle[text])
        assert len(set(known.texts().to_pylist())) == len(known)


def test_many_texts() -> None:
    texts = [f"Q{i * 7919 % 100_003}" for i in range(100_000)]
    known = Vocabulary()
    for start in range(0, len(texts), 30_000):
        known.add(pa.array(texts[start : start + 30_000], type=pa.large_string()))
    found = known.find(pa.array([*texts, "absent"], type=pa.large_string()))
    assert found.tolist() == [*range(100_000), -1]
