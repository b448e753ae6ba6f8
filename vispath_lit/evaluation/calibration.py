"""How far confidence can be trusted: calibration error, reliability bins, accuracy at coverage.

Questions of equal confidence are not told apart: each takes the mean correctness of its tie, so that no
result depends on the order of the questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vispath_lit.evaluation.metrics import MetricError

Floats = NDArray[np.float64]
BINS = 15


class Bin(NamedTuple):
    """One bar of a reliability diagram: the mean confidence and accuracy of its `size` questions."""

    confidence: float
    accuracy: float
    size: int


def fixed_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> list[Bin]:
    """Bins of equal width over [0, 1], empty ones left out.

    Bin b of B holds (b / B, (b + 1) / B]; the first one also holds 0.

    Raises:
        MetricError: NaN, a confidence outside [0, 1], or unequal lengths.
    """
    given, right = checked(confidence, correct)
    place = np.clip(np.ceil(given * bins) - 1, 0, bins - 1).astype(np.int64)
    return [_bin(given[place == b], right[place == b]) for b in range(bins) if (place == b).any()]


def adaptive_bins(confidence: ArrayLike, correct: ArrayLike, bins: int = BINS) -> list[Bin]:
    """Bins of equal size (within one question) in order of confidence (Nguyen and O'Connor, 2015).

    Raises:
        MetricError: as `fixed_bins`.
    """
    given, right = checked(confidence, correct)
    order = np.argsort(given, kind="stable")
    parts = np.array_split(order, min(bins, len(order))) if len(order) else []
    shared = _tie_means(given, right)
    return [_bin(given[part], shared[part]) for part in parts]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Expected calibration error: |accuracy - confidence|, averaged over the bins by their size."""
    total = sum(part.size for part in bins)
    return sum(abs(part.accuracy - part.confidence) * part.size for part in bins) / total if total else 0.0


def accuracy_at(confidence: ArrayLike, correct: ArrayLike, coverage: float) -> float:
    """Accuracy on the most confident `coverage` of the questions (rounded up to a whole number of them).

    Raises:
        MetricError: as `fixed_bins`, or a coverage outside (0, 1].
    """
    given, right = checked(confidence, correct)
    if not 0 < coverage <= 1:
        raise MetricError(f"coverage is {coverage}: expected a share in (0, 1].")
    if not len(given):
        return 0.0
    answered = max(1, int(np.ceil(round(coverage * len(given), 9))))
    order = np.argsort(-given, kind="stable")[:answered]
    return float(_tie_means(given, right)[order].mean())


def checked(confidence: ArrayLike, correct: ArrayLike) -> tuple[Floats, Floats]:
    """Both as float arrays of one length, confidence in [0, 1] and no NaN, or `MetricError`."""
    given = np.asarray(confidence, dtype=np.float64)
    right = np.asarray(correct, dtype=np.float64)
    if given.shape != right.shape or given.ndim != 1:
        raise MetricError(
            f"confidence has shape {given.shape}, correctness {right.shape}: expected [n] both."
        )
    if not np.isfinite(right).all():
        raise MetricError("correctness holds NaN: expected 0 or 1 for each question.")
    bad = ~((given >= 0) & (given <= 1))
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise MetricError(f"confidence {given[place]} of question {place}: expected a number in [0, 1].")
    return given, right


def _tie_means(given: Floats, right: Floats) -> Floats:
    """Each value of `right` replaced by the mean over the questions of equal confidence."""
    _, tie = np.unique(given, return_inverse=True)
    return np.asarray((np.bincount(tie, right) / np.bincount(tie))[tie], dtype=np.float64)


def _bin(given: Floats, right: Floats) -> Bin:
    return Bin(float(given.mean()), float(right.mean()), len(given))
