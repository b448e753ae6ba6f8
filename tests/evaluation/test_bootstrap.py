"""The clustered bootstrap against a plain loop, and against what statistics promises."""

from __future__ import annotations

import math

import numpy as np
import pytest

from vispath_lit.evaluation import bootstrap
from vispath_lit.evaluation.bootstrap import differences, intervals
from vispath_lit.evaluation.metrics import MetricError


def slow_samples(values: list[float], clusters: list[str], resamples: int, seed: int) -> list[float]:
    """Draws whole clusters by the same generator, and averages over their questions one by one."""
    names = list(dict.fromkeys(clusters))
    rng = np.random.default_rng(seed)
    samples = []
    for row in rng.integers(len(names), size=(resamples, len(names))):
        drawn = [values[i] for c in row for i, name in enumerate(clusters) if name == names[c]]
        samples.append(sum(drawn) / len(drawn))
    return samples


VALUES = [1.0, 0.0, 1.0, 1.0, 0.0, 0.5, 1.0]
CLUSTERS = ["a", "b", "a", "c", "c", "d", "a"]


def test_interval_against_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = slow_samples(VALUES, CLUSTERS, 500, seed=3)
    low, high = np.percentile(samples, [2.5, 97.5])
    for block in (10, 4_000_000):
        monkeypatch.setattr(bootstrap, "_BLOCK", block)
        (found,) = intervals([[v] for v in VALUES], CLUSTERS, resamples=500, seed=3)
        assert found == pytest.approx((np.mean(VALUES), low, high))


def test_p_against_a_loop() -> None:
    other = [0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 1.0]
    delta = [a - b for a, b in zip(VALUES, other, strict=True)]
    mean = sum(delta) / len(delta)
    samples = slow_samples(delta, CLUSTERS, 500, seed=0)
    extreme = sum(abs(s - mean) >= abs(mean) - 1e-12 for s in samples)
    (found,) = differences([[v] for v in VALUES], [[v] for v in other], CLUSTERS, resamples=500)
    assert found.p == pytest.approx((extreme + 1) / 501)
    assert found.mean == pytest.approx(mean)


def test_the_same_system_twice_does_not_differ() -> None:
    (found,) = differences([[v] for v in VALUES], [[v] for v in VALUES], CLUSTERS)
    assert found == (0.0, 0.0, 0.0, 1.0)


def test_a_clear_gain_is_seen() -> None:
    rng = np.random.default_rng(0)
    clusters = rng.integers(150, size=600).tolist()
    base = (rng.random(600) < 0.4).astype(float)
    better = np.maximum(base, rng.random(600) < 0.15)
    (gain,) = differences(better[:, None], base[:, None], clusters)
    assert gain.p < 0.001
    assert gain.low is not None
    assert gain.low > 0


def test_false_alarms_are_as_rare_as_promised() -> None:
    """Under no difference, but with correlated clusters, p < 0.05 comes in about 5 % of the trials."""
    rng = np.random.default_rng(5)
    alarms = 0
    clusters = np.repeat(np.arange(60), 5).tolist()
    for trial in range(200):
        shared = np.repeat(rng.normal(size=60), 5)
        delta = shared + rng.normal(size=300)
        (found,) = differences(delta[:, None], np.zeros((300, 1)), clusters, resamples=400, seed=trial)
        alarms += found.p < 0.05
    assert 2 <= alarms <= 24


def test_clusters_widen_the_interval() -> None:
    values = [[float(i // 10 % 2)] for i in range(200)]
    (clustered,) = intervals(values, [i // 10 for i in range(200)])
    (single,) = intervals(values, list(range(200)))
    assert clustered.low is not None
    assert single.low is not None
    assert clustered.mean - clustered.low > 2 * (single.mean - single.low)


def test_one_cluster_says_nothing() -> None:
    assert intervals([[1.0], [0.0]], ["a", "a"]) == [(0.5, None, None)]
    assert differences([[1.0], [1.0]], [[0.0], [0.0]], ["a", "a"]) == [(1.0, None, None, 1.0)]


def test_the_seed_decides() -> None:
    values = np.random.default_rng(1).random((40, 2))
    clusters = [i // 2 for i in range(40)]
    assert intervals(values, clusters, seed=1) == intervals(values, clusters, seed=1)
    assert intervals(values, clusters, seed=1) != intervals(values, clusters, seed=2)


@pytest.mark.parametrize("values", [[[math.nan]], [], [[1.0], [2.0]], [1.0]])
def test_what_cannot_be_averaged_is_refused(values: list[list[float]]) -> None:
    with pytest.raises(MetricError):
        intervals(values, ["a"])
    with pytest.raises(MetricError, match="same questions"):
        differences([[1.0]], [[1.0], [0.0]], ["a"])
