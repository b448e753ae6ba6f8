from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.models.ranking import best_first
from vispath_lit.search.discovery import log_softmax_in
from vispath_lit.search.ranking import staged_top, top_per_group
from vispath_lit.types import Paths, Rows

SCORES = st.sampled_from([-3.0, -0.5, -0.0, 0.0, 1e-30, 0.25, 0.5, 1e20])
ROWS = st.lists(st.tuples(st.integers(0, 3), SCORES, st.integers(0, 2)), max_size=25)


@given(ROWS, st.integers(1, 5), st.none() | st.integers(1, 3))
def test_top_per_group_equals_a_stable_sort(
    rows: list[tuple[int, float, int]], limit: int, cap: int | None
) -> None:
    expected = []
    for group in range(4):
        mine = [i for i, row in enumerate(rows) if row[0] == group]
        mine.sort(key=lambda i: -rows[i][1])
        taken: list[int] = []
        for i in mine:
            alike = sum(rows[j][2] == rows[i][2] for j in taken)
            if len(taken) < limit and (cap is None or alike < cap):
                taken.append(i)
        expected += taken
    groups = torch.tensor([row[0] for row in rows], dtype=torch.long)
    kinds = torch.tensor([row[2] for row in rows], dtype=torch.long)
    scores = torch.tensor([row[1] for row in rows])
    assert top_per_group(scores, groups, limit, kinds, cap).tolist() == expected


def test_the_cap_of_a_kind_applies_before_the_limit() -> None:
    scores = torch.tensor([9.0, 8.0, 7.0, 1.0])
    kind = torch.tensor([5, 5, 5, 6])
    assert top_per_group(scores, torch.zeros(4, dtype=torch.long), 2, kind, 1).tolist() == [0, 3]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_logit_that_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        best_first(torch.tensor([0.0, bad]), torch.zeros(2, dtype=torch.long))


@dataclass
class Stage:
    """A stage whose logits are a table."""

    keep: int | None
    table: list[float]
    texts: int | None = None

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        raise NotImplementedError

    def chain_vectors(self, chains: Paths) -> Rows:
        raise NotImplementedError


def table_score(asked: list[list[int]]) -> Callable[[object, Tensor], Tensor]:
    def score(stage: object, rows: Tensor) -> Tensor:
        assert isinstance(stage, Stage)
        asked.append(rows.tolist())
        return torch.tensor([stage.table[row] for row in rows.tolist()])

    return score


def test_an_early_stage_shortlists_and_the_last_one_decides() -> None:
    coarse = Stage(2, [0.1, 0.9, 0.8, 0.7, 0.6, 0.5])
    exact = Stage(None, [9.0, 0.1, 0.2, 0.3, 0.5, 0.4])
    group = torch.tensor([0, 0, 0, 0, 1, 1])
    asked: list[list[int]] = []
    best, scored, logits = staged_top((coarse, exact), table_score(asked), group, 1, 1)
    assert asked == [[0, 1, 2, 3, 4, 5], [1, 2, 4, 5]]  # row 0 is lost to the shortlist of 2 x 1
    assert scored[best].tolist() == [2, 4]
    assert logits.tolist() == pytest.approx([0.1, 0.2, 0.5, 0.4])


def test_of_a_shortlist_only_what_is_afforded_is_asked_of_the_last_stage() -> None:
    coarse = Stage(2, [0.1, 0.9, 0.8, 0.7, 0.6, 0.5])
    exact = Stage(None, [9.0, 0.1, 0.2, 0.3, 0.5, 0.4])
    group = torch.tensor([0, 0, 0, 0, 1, 1])
    asked: list[list[int]] = []

    def afford(stage: object, rows: Tensor) -> Tensor:
        assert stage is coarse
        assert rows.tolist() == [1, 2, 4, 5]  # by group, then best first
        return torch.tensor([False, True, True, False])

    best, scored, _ = staged_top((coarse, exact), table_score(asked), group, 1, 1, afford=afford)
    assert asked[1] == scored.tolist() == scored[best].tolist() == [2, 4]


def test_ties_after_a_shortlist_keep_the_first_order() -> None:
    coarse = Stage(2, [0.1, 0.2, 0.3])
    exact = Stage(None, [1.0, 1.0, 1.0])
    best, scored, _ = staged_top((coarse, exact), table_score([]), torch.zeros(3, dtype=torch.long), 1, 2)
    assert scored[best].tolist() == [1, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(-50, 50, width=32)), min_size=1, max_size=20))
def test_log_softmax_in_groups_equals_the_plain_one(rows: list[tuple[int, float]]) -> None:
    found = log_softmax_in(torch.tensor([x for _, x in rows]), torch.tensor([g for g, _ in rows]), 4)
    for i, (group, x) in enumerate(rows):
        others = [math.exp(y - x) for g, y in rows if g == group]
        assert found[i].item() == pytest.approx(-math.log(sum(others)), abs=1e-4)
