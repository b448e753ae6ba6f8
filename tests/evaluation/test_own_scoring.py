"""A data set's own scores against slow second implementations by hand, and what malformed rules are told."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vispath_lit.errors import DataError
from vispath_lit.evaluation.own import (
    check_rule,
    harmonic_mean,
    list_overlap,
    number_in,
    own_accuracy,
    range_overlap,
)
from vispath_lit.types import Question

ITEMS = st.lists(st.sampled_from("abcdef"), max_size=5, unique=True)


def asked(**rule: object) -> Question:
    return Question("q1", "?", meta={"scoring": rule})


@given(ITEMS, ITEMS)
def test_overlap_is_intersection_over_union(predicted: list[str], gold: list[str]) -> None:
    union = set(predicted) | set(gold)
    expected = len(set(predicted) & set(gold)) / len(union) if union else 0
    assert list_overlap([[one] for one in predicted], gold) == pytest.approx(expected)


def test_an_item_is_known_by_any_name_and_taken_once() -> None:
    assert list_overlap([["Rhine", "Rhein"]], ["the rhein"]) == 1
    assert list_overlap([["Rhine"], ["rhine"]], ["Rhine"]) == 1 / 2


@pytest.mark.parametrize(
    ("answers", "answer", "right"),
    [
        ([["red"], ["white"]], "red", 1),
        ([["red"]], "red", 1),
        ([["red"], ["green"], ["pink"]], "red", 0),
        ([], "red && white", 1),
        ([], "", 0),
        ([["green"], ["blue"]], "green", 1),
    ],
)
def test_a_list_is_right_from_half_on_for_one_alternative(
    answers: list[list[str]], answer: str, right: float
) -> None:
    question = asked(kind="list", lists=[["red", "white"], ["green", "blue", "grey"]])
    assert own_accuracy(question, answer, answers, False) == right


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("about 12", (12, 12)),
        ("1,234.5 m", (1234.5, 1234.5)),
        ("1,23", (1, 1)),
        ("-3", (-3, -3)),
        ("3-5 kg", (3, 5)),
        ("5 to 3", (3, 5)),
        ("3 \u2013 5", (3, 5)),
        ("1e3", (1000, 1000)),
        ("none", None),
        ("9" * 400, None),
        ("", None),
    ],
)
def test_the_first_number_of_a_text(text: str, expected: tuple[float, float] | None) -> None:
    assert number_in(text) == expected


@given(*[st.integers(0, 30)] * 4)
def test_ranges_overlap_as_counted_by_steps(a: int, b: int, c: int, d: int) -> None:
    found, gold = (min(a, b), max(a, b)), (min(c, d), max(c, d))
    cells = [set(range(*one)) for one in (found, gold)]
    if found[0] == found[1]:
        assert range_overlap(found, gold) == (gold[0] <= found[0] <= gold[1])
    elif found[1] > gold[0] and gold[1] > found[0]:
        assert range_overlap(found, gold) == pytest.approx(
            len(cells[0] & cells[1]) / len(cells[0] | cells[1])
        )
    else:
        assert range_overlap(found, gold) == 0


@pytest.mark.parametrize(
    ("answer", "right"), [("1.05", 1), ("1.2", 0), ("5", 1), ("4-7", 1), ("0-9", 0), ("x", 0)]
)
def test_a_number_is_right_inside_any_range(answer: str, right: float) -> None:
    question = asked(kind="range", ranges=[[0.9, 1.1], [4, 6]])
    assert own_accuracy(question, answer, [], False) == right


@pytest.mark.parametrize("exact", [True, False])
def test_exact_is_what_was_found_and_no_rule_is_no_score(exact: bool) -> None:
    assert own_accuracy(asked(kind="exact"), "x", [], exact) == exact
    assert own_accuracy(Question("q", "?"), "x", [], exact) is None


BAD: list[object] = [
    None, "list", {}, {"kind": "bem"}, {"kind": "list"}, {"kind": "list", "lists": [[]]}, {"kind": "list",
    "lists": [[1]]},
    {"kind": "range", "ranges": [[2, 1]]}, {"kind": "range", "ranges": [[1]]}, {"kind": "range", "ranges":
    [[True, 2]]},
    {"kind": "range", "ranges": [[float("nan"), 1]]}, {"kind": "range", "ranges": {}},
    {"kind": "range", "ranges": [[0, 10**400]]}, {"kind": "range", "ranges": [[float("-inf"), 1]]},
]  # fmt: skip


@pytest.mark.parametrize("rule", BAD, ids=[str(i) for i in range(len(BAD))])
def test_a_malformed_rule_names_its_question(rule: object) -> None:
    with pytest.raises(DataError, match="question 'q1'"):
        own_accuracy(Question("q1", "?", meta={"scoring": rule}), "1", [], False)
    with pytest.raises(DataError, match="question 'q1'"):
        check_rule(Question("q1", "?", meta={"scoring": rule}))


def test_the_harmonic_mean() -> None:
    for a, b in itertools.product((0.2, 0.5, 1.0), repeat=2):
        assert harmonic_mean(a, b) == pytest.approx(1 / ((1 / a + 1 / b) / 2))
    assert harmonic_mean(0, 0) == harmonic_mean(0, 1) == 0
