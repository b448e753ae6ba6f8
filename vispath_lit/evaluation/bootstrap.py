"""Bootstrap intervals clustered by start entity: questions that share a start are not independent.

Clusters, not questions, are drawn with replacement (Field and Welsh, 2007); the statistic is the
micro-average over the drawn questions. One call draws once for all of its columns, so the columns are paired.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vispath_lit.evaluation.metrics import MetricError

Floats = NDArray[np.float64]
RESAMPLES = 10_000
LEVEL = 0.95
_BLOCK = 4_000_000
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """A mean with its percentile interval; the ends are None where there are fewer than two clusters."""

    mean: float
    low: float | None
    high: float | None


class Difference(NamedTuple):
    """A paired difference of means, its interval, and the two-sided p-value of "there is none"."""

    mean: float
    low: float | None
    high: float | None
    p: float


def intervals(
    values: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> list[Interval]:
    """The mean of each column with its clustered interval.

    Args:
        values: `[n, M]`, one row a question, one column a metric.
        clusters: n cluster names (start entities).
        resamples: number of bootstrap samples.
        level: share of the samples inside the interval.
        seed: of the draws.

    Raises:
        MetricError: NaN, no question, or lengths that do not fit.
    """
    means, samples = _resample(values, clusters, resamples, seed)
    if samples is None:
        return [Interval(float(mean), None, None) for mean in means]
    low, high = _percentiles(samples, level)
    return [Interval(float(m), float(a), float(b)) for m, a, b in zip(means, low, high, strict=True)]


def differences(
    first: ArrayLike,
    second: ArrayLike,
    clusters: Sequence[Hashable],
    *,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> list[Difference]:
    """`first - second` for each column of two `[n, M]` tables over the same questions, row by row.

    p is the share of samples whose difference lies at least as far from the observed one as the observed
    one lies from 0 (the bootstrap shifted to the null hypothesis), with one added to both counts, so that
    it is never 0. With fewer than two clusters nothing can be said: p = 1.

    Raises:
        MetricError: as `intervals`, or tables of different shapes.
    """
    left, right = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if left.shape != right.shape:
        raise MetricError(
            f"tables of shapes {left.shape} and {right.shape}: expected the same questions twice."
        )
    means, samples = _resample(left - right, clusters, resamples, seed)
    if samples is None:
        return [Difference(float(mean), None, None, 1.0) for mean in means]
    low, high = _percentiles(samples, level)
    extreme = (np.abs(samples - means) >= np.abs(means) - _ROUNDING).sum(axis=0)
    p = (extreme + 1) / (len(samples) + 1)
    rows = zip(means, low, high, p, strict=True)
    return [Difference(float(m), float(a), float(b), float(q)) for m, a, b, q in rows]


def _resample(
    values: ArrayLike, clusters: Sequence[Hashable], resamples: int, seed: int
) -> tuple[Floats, Floats | None]:
    """`[M]` observed means and `[resamples, M]` bootstrap means (None for fewer than two clusters)."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or len(table) != len(clusters) or not len(table):
        raise MetricError(
            f"a table of shape {table.shape} for {len(clusters)} questions: expected [n, M], n > 0."
        )
    if not np.isfinite(table).all():
        raise MetricError("the table holds NaN: expected a number for each question and metric.")
    places: dict[Hashable, int] = {}
    owner = np.array([places.setdefault(name, len(places)) for name in clusters])
    size = np.bincount(owner).astype(np.float64)
    sums = np.stack([np.bincount(owner, column) for column in table.T], axis=1)
    means = np.asarray(table.mean(axis=0))
    if len(places) < 2:
        return means, None
    weights = np.column_stack([sums, size])
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK // len(places))
    drawn = [
        _draw(rng, min(block, resamples - begin), len(places)) @ weights
        for begin in range(0, resamples, block)
    ]
    totals = np.concatenate(drawn)
    return means, totals[:, :-1] / totals[:, -1:]


def _draw(rng: np.random.Generator, rows: int, clusters: int) -> Floats:
    """`[rows, clusters]`: how often each cluster is drawn in each sample."""
    drawn = rng.integers(clusters, size=(rows, clusters)) + np.arange(rows)[:, None] * clusters
    counts = np.bincount(drawn.ravel(), minlength=rows * clusters)
    return counts.reshape(rows, clusters).astype(np.float64)


def _percentiles(samples: Floats, level: float) -> tuple[Floats, Floats]:
    tail = 50 * (1 - level)
    low, high = np.percentile(samples, [tail, 100 - tail], axis=0)
    return np.asarray(low), np.asarray(high)
