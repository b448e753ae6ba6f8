"""Calibration error and accuracy at coverage against loops and against every order of the ties."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.evaluation import calibration
from vispath_lit.evaluation.metrics import MetricError

cases = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.25, 0.5, 0.9, 1.0]), st.booleans()), max_size=6)


def slow_fixed(confidence: list[float], correct: list[bool], bins: int) -> float:
    error = 0.0
    for b in range(bins):
        low, high = b / bins, (b + 1) / bins
        inside = [i for i, c in enumerate(confidence) if low < c <= high or (b == 0 and c == 0)]
        if inside:
            mean_c = sum(confidence[i] for i in inside) / len(inside)
            mean_a = sum(correct[i] for i in inside) / len(inside)
            error += len(inside) / len(confidence) * abs(mean_a - mean_c)
    return error


@given(cases, st.sampled_from([1, 2, 4, 5, 15]))
def test_fixed_bins_against_a_loop(case: list[tuple[float, bool]], bins: int) -> None:
    confidence, correct = [c for c, _ in case], [r for _, r in case]
    found = calibration.calibration_error(calibration.fixed_bins(confidence, correct, bins))
    assert found == pytest.approx(slow_fixed(confidence, correct, bins))


@settings(max_examples=40, deadline=None)
@given(cases, st.integers(1, 4))
def test_adaptive_bins_do_not_depend_on_the_order(case: list[tuple[float, bool]], bins: int) -> None:
    found = set()
    for order in itertools.permutations(case):
        parts = calibration.adaptive_bins([c for c, _ in order], [r for _, r in order], bins)
        assert sum(part.size for part in parts) == len(case)
        found.add(round(calibration.calibration_error(parts), 9))
    assert len(found) == 1


def test_adaptive_bins_by_hand() -> None:
    parts = calibration.adaptive_bins([0.9, 0.1, 0.8, 0.2], [True, False, False, True], bins=2)
    assert [p.confidence for p in parts] == pytest.approx([0.15, 0.85])
    assert [(p.accuracy, p.size) for p in parts] == [(0.5, 2), (0.5, 2)]
    assert calibration.calibration_error(parts) == pytest.approx(0.35)


@settings(max_examples=40, deadline=None)
@given(cases, st.sampled_from([0.2, 0.5, 0.75, 1.0]))
def test_accuracy_at_coverage_is_the_mean_over_the_orders_of_ties(
    case: list[tuple[float, bool]], coverage: float
) -> None:
    confidence, correct = [c for c, _ in case], [r for _, r in case]
    answered = math.ceil(round(coverage * len(case), 9))
    scores = []
    for order in itertools.permutations(range(len(case))):
        ranked = sorted(order, key=lambda i: -confidence[i])
        scores.append(sum(correct[i] for i in ranked[:answered]) / answered if answered else 0.0)
    expected = sum(scores) / len(scores)
    assert calibration.accuracy_at(confidence, correct, coverage) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("confidence", "correct"),
    [([math.nan], [1]), ([-0.1], [1]), ([1.1], [0]), ([0.5], [math.nan]), ([0.5], [1, 0])],
)
def test_what_is_no_confidence_is_refused(confidence: list[float], correct: list[float]) -> None:
    with pytest.raises(MetricError):
        calibration.fixed_bins(confidence, correct)
    with pytest.raises(MetricError):
        calibration.accuracy_at(confidence, correct, 1.0)


def test_coverage_outside_its_range_is_refused() -> None:
    with pytest.raises(MetricError, match="coverage is 0"):
        calibration.accuracy_at([0.5], [1], 0)
