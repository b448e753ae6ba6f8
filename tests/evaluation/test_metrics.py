"""Metrics against slow second implementations, and on the inputs that metrics get wrong."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.evaluation import metrics
from vispath_lit.evaluation.metrics import MetricError, Overlap, Step


class TableEncoder:
    """A text encoder whose vectors are written in the test."""

    dim = 2
    fingerprint = "table"

    def __init__(self, table: dict[str, tuple[float, float]]) -> None:
        self.table = table

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.tensor([self.table[text] for text in texts])

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def at(degrees: float) -> tuple[float, float]:
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("The  Hague", "hague"),
        ("STRASSE", "Straße"),
        ("Ｆｕｊｉ", "fuji"),
        ("U.S.", "us"),
        ("Saint-Denis", "saint denis"),
        ("Cafe\u0301", "CAFÉ"),
        ("«Guernica»", "guernica"),
    ],
)
def test_normalize_joins_spellings(left: str, right: str) -> None:
    assert metrics.normalize(left) == metrics.normalize(right)


def test_normalize_keeps_what_is_only_an_article_or_punctuation() -> None:
    assert metrics.normalize("The The") == "the the"
    assert metrics.normalize("A") == "a"
    assert metrics.normalize("!!!") == "!!!"
    assert metrics.normalize("A") != metrics.normalize("An")
    assert metrics.normalize(" \n") == ""


@given(st.text(max_size=30))
def test_normalize_is_idempotent(text: str) -> None:
    once = metrics.normalize(text)
    assert metrics.normalize(once) == once


def test_exact_match_is_no_substring_and_no_empty_match() -> None:
    assert metrics.exact_match("the Paris", ["Lutetia", "Paris"])
    assert not metrics.exact_match("Paris, Texas", ["Paris"])
    assert not metrics.exact_match("", ["Paris"])
    assert not metrics.exact_match("  ", ["", " "])
    assert not metrics.exact_match("Paris", [])


small = st.lists(st.integers(0, 5), max_size=6)


@given(small, small, st.integers(1, 4))
def test_sets_against_counting_by_hand(found: list[int], wanted: list[int], k: int) -> None:
    distinct = sorted(set(wanted))
    hits = sum(1 for x in sorted(set(found)) if x in distinct)
    overlap = metrics.set_overlap(found, wanted)
    assert overlap.precision == (hits / len(set(found)) if found else 0)
    assert overlap.recall == (hits / len(distinct) if wanted else 0)
    both = len(set(found)) + len(distinct)
    assert overlap.f1 == pytest.approx(2 * hits / both if both else 0)
    in_top = sum(1 for x in distinct if x in found[:k])
    assert metrics.recall_at(found, wanted, k) == (in_top / len(distinct) if wanted else 0)


def test_recall_divides_by_all_gold_answers() -> None:
    assert metrics.recall_at([1, 2, 3], {1, 2, 3, 4, 5, 6}, 3) == 0.5


step = st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1))
walk = st.lists(step, max_size=3)


def slow_overlap(path: list[Step], gold: list[list[Step]]) -> float:
    best = 0.0
    for wanted in gold:
        rest, shared = list(wanted), 0
        for edge in path:
            if edge in rest:
                rest.remove(edge)
                shared += 1
        if shared:
            best = max(best, 2 * shared / (len(path) + len(wanted)))
    return best


@given(walk, st.lists(walk, max_size=3))
def test_path_overlap_against_crossing_out(path: list[Step], gold: list[list[Step]]) -> None:
    assert metrics.path_overlap(path, gold).f1 == pytest.approx(slow_overlap(path, gold))


def test_path_overlap_counts_a_returning_walk_twice() -> None:
    there, back = ("a", 0, "b"), ("b", 5, "a")
    assert metrics.path_overlap([there, back, there], [[there]]) == Overlap(1 / 3, 1.0, 0.5)


def test_path_hit_needs_start_direction_and_order() -> None:
    gold = [[("a", 0, "b"), ("b", 1, "c")]]
    hit = [("a", 0, "b"), ("b", 1, "c")]
    assert metrics.path_hit([[], hit], gold, 3)
    assert not metrics.path_hit([[], hit], gold, 1)
    assert not metrics.path_hit([[("x", 0, "b"), ("b", 1, "c")]], gold, 3)
    assert not metrics.path_hit([[("a", 2, "b"), ("b", 1, "c")]], gold, 3)
    assert not metrics.path_hit([hit[:1]], gold, 3)
    assert not metrics.path_hit([], gold, 3)
    assert not metrics.path_hit([hit], [], 3)


def test_best_cosines_with_only_negative_ones_stay_negative() -> None:
    encoder = TableEncoder({"p": at(0), "g1": at(120), "g2": at(180), "g3": at(60), "": at(0)})
    best = metrics.best_cosines(["p", "p", "", "p"], [["g2", "g1"], ["g2", "g3", "g1"], ["p"], []], encoder)
    assert best == pytest.approx([-0.5, 0.5, -1, -1], abs=1e-6)


def test_the_threshold_itself_counts() -> None:
    encoder = TableEncoder({"p": (1.0, 0.0), "g": (0.3, math.sqrt(1 - 0.09))})
    exact = TableEncoder({"p": (1.0, 0.0), "g": (0.5, math.sqrt(0.75))})
    assert metrics.best_cosines(["p"], [["g"]], exact)[0] >= 0.5
    assert metrics.best_cosines(["p"], [["g"]], encoder)[0] == pytest.approx(0.3)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 35), min_size=2, max_size=6),
    st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=2, max_size=12),
)
def test_chance_against_all_pairs(angles: list[int], picks: list[list[int]]) -> None:
    # Eighths of degrees away from the threshold's own angle, so that rounding cannot decide.
    table = {f"t{i}": at(10 * angle + 1 / 8) for i, angle in enumerate(angles)}
    gold = [[f"t{p % len(angles)}" for p in pick] for pick in picks]
    answered = [texts for texts in gold if texts]
    pairs = list(itertools.permutations(range(len(answered)), 2))
    hits = 0
    for i, j in pairs:
        guess = table[answered[j][0]]
        hits += any(guess[0] * table[t][0] + guess[1] * table[t][1] >= 0.3 for t in answered[i])
    expected = hits / len(pairs) if pairs else 0.0
    assert metrics.sbert_chance(gold, TableEncoder(table)) == pytest.approx(expected)


def test_chance_takes_no_more_room_for_a_long_answer() -> None:
    table = {"x" * 20_000: at(0), **{f"t{i}": at(i) for i in range(300)}}
    tracemalloc.start()
    metrics.sbert_chance([[text] for text in table], TableEncoder(table))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8_000_000  # an array of texts of one width: 300 * 20,000 * 4 bytes


def test_nan_is_refused() -> None:
    broken = TableEncoder({"p": (math.nan, 0.0), "g": (1.0, 0.0)})
    with pytest.raises(MetricError, match="'p'"):
        metrics.best_cosines(["p"], [["g"]], broken)
    with pytest.raises(MetricError, match="confidence is nan"):
        metrics.finite(math.nan, "confidence")
    with pytest.raises(MetricError, match="one each"):
        metrics.best_cosines(["p"], [], broken)
    assert np.isfinite(metrics.finite(-3.0, "score"))
