from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.models.texts.retention import retention


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.integers(0, 5)), max_size=30),
    st.integers(1, 4),
    st.integers(1, 3),
)
def test_against_sets(rows: list[tuple[int, int, int]], width: int, keep: int) -> None:
    rows = sorted(rows, key=lambda row: row[0])
    oracle = []
    for group in range(4):
        items = [(first, last) for g, first, last in rows if g == group]
        if len(items) > width:
            places = range(len(items))
            best = set(sorted(places, key=lambda i: (-items[i][1], i))[:width])
            kept = set(sorted(places, key=lambda i: (-items[i][0], i))[: keep * width])
            oracle.append(len(best & kept) / width)
    columns = [torch.tensor([row[i] for row in rows]) for i in range(3)]
    found = retention(columns[1].float(), columns[2].float(), columns[0], width, keep)
    torch.testing.assert_close(found, torch.tensor(oracle))


def test_the_same_ranking_keeps_all() -> None:
    scores = torch.randn(50)
    group = torch.zeros(50, dtype=torch.long)
    assert retention(scores, scores, group, 10, 1).tolist() == [1.0]
    assert retention(-scores, scores, group, 10, 1).tolist() == [0.0]
