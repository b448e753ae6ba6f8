"""Scores that a data set defines for itself: lists (Encyclopedic VQA) and ranges of numbers (InfoSeek).

A question asks for one with `scoring` among its further fields; any question file may:
    {"kind": "exact"}                                  an accepted text
    {"kind": "list", "lists": [["red", "white"]]}      the items of one of the lists: IoU of at least 0.5
    {"kind": "range", "ranges": [[0.9, 1.1]]}          a number inside, or a range with IoU of at least 0.5
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from vispath_lit.errors import DataError
from vispath_lit.evaluation.metrics import normalize
from vispath_lit.types import Question

ENOUGH = 0.5
UNSEEN = ("unseen_question", "unseen_entity")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d{1,3})?"
_NUMBERS = re.compile(rf"({_NUMBER})(?:\s*(?:-|\u2013|to)\s*({_NUMBER}))?", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
MAX_NUMBER = 1e300  # The largest end of a range: sums and differences stay finite.
MAX_ANSWER = 10_000  # Characters of an answer that are looked at.


def check_rule(question: Question) -> None:
    """Refuses a `scoring` that is not as above, before anything is asked.

    Raises:
        DataError: names the question.
    """
    if "scoring" in question.meta:
        rule = _rule(question)
        checks = {"list": _lists, "range": _ranges}
        if rule["kind"] in checks:
            checks[rule["kind"]](question, rule)


def own_accuracy(
    question: Question, answer: str, answers: Sequence[Collection[str]], exact: bool
) -> float | None:
    """1 or 0 by the question's own rule, None where it has none.

    Args:
        answers: the names of each entity of the answer set; where it is empty, `answer` may list items
            between `&&`.
        exact: whether the answer equals an accepted text.

    Raises:
        DataError: a `scoring` that is not as above; names the question.
    """
    if "scoring" not in question.meta:
        return None
    rule = _rule(question)
    kind = rule["kind"]
    if kind == "exact":
        return float(exact)
    if kind == "list":
        said = answers or [[item] for item in answer[:MAX_ANSWER].split("&&") if item.strip()]
        return float(max(list_overlap(said, items) for items in _lists(question, rule)) >= ENOUGH)
    found = number_in(answer)
    hits = [range_overlap(found, one) >= ENOUGH for one in _ranges(question, rule)] if found else [False]
    return float(any(hits))


def list_overlap(predicted: Sequence[Collection[str]], gold: Sequence[str]) -> float:
    """Intersection over union of predicted items, each with its names, and the distinct gold items.

    An item that no other has taken is matched by any of its names, in order.
    """
    left = list(dict.fromkeys(map(normalize, gold)))
    total, items = len(left), [list(map(normalize, names)) for names in predicted]
    matched = 0
    for names in items:
        hit = next((name for name in names if name in left), None)
        if hit is not None:
            left.remove(hit)
            matched += 1
    union = len(items) + total - matched
    return matched / union if union else 0.0


def number_in(text: str) -> tuple[float, float] | None:
    """The first number or range ("3 to 5") in a text as (low, high); None where there is none."""
    found = _NUMBERS.search(_THOUSANDS.sub("", text[:MAX_ANSWER]))
    if found is None:
        return None
    ends = sorted(float(one) for one in found.groups() if one is not None)
    return (ends[0], ends[-1]) if all(map(math.isfinite, ends)) else None


def range_overlap(found: tuple[float, float], gold: tuple[float, float]) -> float:
    """Intersection over union of two closed ranges; a number is 1 inside the gold range and 0 outside."""
    if found[0] == found[1]:
        return float(gold[0] <= found[0] <= gold[1])
    shared = min(found[1], gold[1]) - max(found[0], gold[0])
    union = max(found[1], gold[1]) - min(found[0], gold[0])
    return max(shared, 0.0) / union


def harmonic_mean(first: float, second: float) -> float:
    """2ab / (a + b); 0 where both are."""
    return 2 * first * second / (first + second) if first + second else 0.0


def _rule(question: Question) -> Mapping[str, Any]:
    rule = question.meta["scoring"]
    if not isinstance(rule, Mapping) or rule.get("kind") not in ("exact", "list", "range"):
        _refuse(question, rule)
    return rule


def _lists(question: Question, rule: Mapping[str, Any]) -> list[list[str]]:
    lists = rule.get("lists")
    if not isinstance(lists, list) or not lists:
        _refuse(question, rule)
    for items in lists:
        if not isinstance(items, list) or not items or not all(isinstance(item, str) for item in items):
            _refuse(question, rule)
    return lists


def _ranges(question: Question, rule: Mapping[str, Any]) -> list[tuple[float, float]]:
    ranges = rule.get("ranges")
    if not isinstance(ranges, list) or not ranges:
        _refuse(question, rule)
    for one in ranges:
        numbers = isinstance(one, list) and len(one) == 2 and all(type(end) in (int, float) for end in one)
        if not numbers or not -MAX_NUMBER <= one[0] <= one[1] <= MAX_NUMBER:
            _refuse(question, rule)
    return [(float(low), float(high)) for low, high in ranges]


def _refuse(question: Question, rule: object) -> NoReturn:
    raise DataError(
        f"question {question.id!r}: scoring is {rule!r:.200}; expected a mapping with kind exact, "
        "list (and lists of texts) or range (and ranges [low, high])"
    )
