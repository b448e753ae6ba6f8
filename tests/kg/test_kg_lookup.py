"""The look-up tables against a slow second way to sort them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.kg.lookup import HashTable, hash_column, hash_table, hash_texts

# Few hashes and entities, so that runs and repetitions are common; the ends of both ranges are among them.
HASHES = st.sampled_from([0, 1, 2, 2**32, 2**63, 2**64 - 1])
ENTITIES = st.sampled_from([0, 1, 2, 3, 2**31 - 1])


@settings(deadline=None)
@given(st.lists(st.tuples(HASHES, ENTITIES), max_size=60))
def test_pairs_are_sorted_and_each_is_kept_once(pairs: list[tuple[int, int]]) -> None:
    table = hash_table(
        np.array([pair[0] for pair in pairs], dtype=np.uint64),
        np.array([pair[1] for pair in pairs], dtype=np.int32),
    )
    found = list(zip(table.hashes.tolist(), table.entities.tolist(), strict=True))
    assert found == sorted(set(pairs))
    assert table.hashes.dtype == np.uint64
    assert table.entities.dtype == np.int32


def test_the_given_arrays_stay_as_they_were() -> None:
    hashes, entities = np.array([5, 3, 5], dtype=np.uint64), np.array([2, 1, 0], dtype=np.int32)
    hash_table(hashes, entities)
    assert hashes.tolist() == [5, 3, 5]
    assert entities.tolist() == [2, 1, 0]


def test_a_text_finds_all_who_bear_it_in_ascending_order() -> None:
    texts = ["Paris", "Rome", "Paris", "São Paulo", "Paris"]
    table = hash_table(hash_texts(texts), np.array([9, 4, 2, 7, 2]))
    found = table.find(["Paris", "São Paulo", "Oslo"])
    assert [entities.tolist() for entities in found] == [[2, 9], [7], []]


def test_a_column_hashes_as_its_texts_do() -> None:
    texts = ["", "a", "é", "Ω" * 100]
    assert hash_column(pa.array(texts, type=pa.large_string())).tolist() == hash_texts(texts).tolist()


def test_an_empty_table_finds_nothing() -> None:
    table = hash_table(np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int32))
    assert isinstance(table, HashTable)
    assert [found.tolist() for found in table.find(["a"])] == [[]]
