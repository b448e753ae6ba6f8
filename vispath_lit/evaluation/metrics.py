"""What is counted for one question: pure functions on plain values, no state and no averaging.

Conventions, the same for every metric: higher is better; an empty prediction is a miss, never an error
and never left out; ranks follow the given order, so ties are whatever order the system gave. Averages are
taken in `vispath_lit.evaluation.summary`, over a number of questions that no prediction can change.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from vispath_lit.errors import VisPathError
from vispath_lit.protocols import TextEncoder

ARTICLES = frozenset({"a", "an", "the"})
SBERT_THRESHOLD = 0.3
SOFT_THRESHOLD = 0.7
CHANCE_SAMPLE = 2000

Step = tuple[Hashable, Hashable, Hashable]
"""One edge as it was walked: (from, signed relation, to)."""


class MetricError(VisPathError):
    """A value that no metric can be computed from, such as NaN; it is refused, not skipped."""


class Overlap(NamedTuple):
    """Precision, recall and their harmonic mean, each in [0, 1]."""

    precision: float
    recall: float
    f1: float


def finite(value: float, name: str) -> float:
    """`value` itself, if it is a number.

    Raises:
        MetricError: `value` is NaN or infinite.
    """
    if not math.isfinite(value):
        raise MetricError(f"{name} is {value}: expected a finite number. Check the part that gave it.")
    return float(value)


def normalize(text: str) -> str:
    """The form in which answers are compared.

    NFKC, casefold, dashes become spaces, other punctuation (Unicode category P) is dropped, the English
    articles are dropped, white space is collapsed. A text of nothing else ("The The", "!!!") keeps its
    casefolded form, so that it equals itself and nothing empty.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    spaced = "".join(" " if unicodedata.category(c) == "Pd" else c for c in folded)
    bare = "".join(c for c in spaced if not unicodedata.category(c).startswith("P"))
    words = [word for word in bare.split() if word not in ARTICLES]
    return " ".join(words) if words else " ".join(folded.split())


def exact_match(answer: str, accepted: Collection[str]) -> bool:
    """Whether the normalised answer is one of the normalised accepted strings (aliases included)."""
    found = normalize(answer)
    return bool(found) and found in {normalize(text) for text in accepted}


def set_overlap(predicted: Collection[Hashable], gold: Collection[Hashable]) -> Overlap:
    """Precision, recall and F1 of two sets; all 0 where either is empty."""
    found, wanted = set(predicted), set(gold)
    return _overlap(len(found & wanted), len(found), len(wanted))


def recall_at(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Share of the gold answers among the first `k`; divided by all of them, even if more than `k`."""
    wanted = set(gold)
    return len(wanted & set(ranked[:k])) / len(wanted) if wanted else 0.0


def path_hit(paths: Sequence[Sequence[Step]], gold: Collection[Sequence[Step]], k: int) -> bool:
    """Whether one of the first `k` kept paths is a gold path, step by step from its start."""
    wanted = {tuple(path) for path in gold}
    return any(tuple(path) in wanted for path in paths[:k])


def path_overlap(path: Sequence[Step], gold: Collection[Sequence[Step]]) -> Overlap:
    """Precision, recall and F1 over the edges of one path, against the gold path that it matches best.

    Edges are counted as often as they are walked, since a walk may return. Between gold paths of equal F1 the
    first one wins.
    """
    best = Overlap(0.0, 0.0, 0.0)
    for wanted in gold:
        shared = (Counter(path) & Counter(wanted)).total()
        found = _overlap(shared, len(path), len(wanted))
        best = found if found.f1 > best.f1 else best
    return best


def _overlap(shared: int, found: int, wanted: int) -> Overlap:
    if not shared:
        return Overlap(0.0, 0.0, 0.0)
    precision, recall = shared / found, shared / wanted
    return Overlap(precision, recall, 2 * precision * recall / (precision + recall))


def best_cosines(
    predicted: Sequence[str], gold: Sequence[Sequence[str]], encoder: TextEncoder
) -> NDArray[np.float64]:
    """`[n]`: the largest cosine of each prediction with any of its question's gold texts.

    It is -1 where the prediction is empty or a question has no gold text.

    Raises:
        MetricError: the encoder gave NaN.
    """
    if len(predicted) != len(gold):
        raise MetricError(f"{len(predicted)} predictions for {len(gold)} questions: expected one each.")
    best = np.full(len(predicted), -1.0)
    asked = [i for i, text in enumerate(predicted) if text.strip() and len(gold[i])]
    if not asked:
        return best
    flat = [text for i in asked for text in gold[i]]
    owner = np.repeat(np.arange(len(asked)), [len(gold[i]) for i in asked])
    left, right = _vectors([predicted[i] for i in asked], encoder), _vectors(flat, encoder)
    cosines = (left[owner] * right).sum(axis=1)
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    best[asked] = np.maximum.reduceat(cosines, first)
    return best


def sbert_chance(gold: Sequence[Sequence[str]], encoder: TextEncoder) -> float:
    """SBERT@0.3 of a system that answers with another question's gold answer: the level to beat.

    It is the mean, over questions i and all other questions j, of "the first answer of j has a cosine of at
    least 0.3 with an answer of i", computed exactly, not drawn. Of i, at most the first 2,000 questions are
    used (splits are shuffled); questions without an answer take no part. 0 for fewer than two questions.
    """
    answered = [list(texts) for texts in gold if texts]
    if len(answered) < 2:
        return 0.0
    # As objects: an array of texts would take the longest one's room for each.
    firsts = np.array([texts[0] for texts in answered], dtype=object)
    distinct, counts = np.unique(firsts, return_counts=True)
    guesses = _vectors([str(text) for text in distinct], encoder)
    sampled = answered[:CHANCE_SAMPLE]
    total = 0.0
    for begin in range(0, len(sampled), 128):
        block = sampled[begin : begin + 128]
        own_row = np.searchsorted(distinct, firsts[begin : begin + len(block)])
        vectors = _vectors([text for texts in block for text in texts], encoder)
        first = np.cumsum([0] + [len(texts) for texts in block[:-1]])
        near = np.maximum.reduceat(vectors @ guesses.T, first, axis=0) >= SBERT_THRESHOLD
        own = near[np.arange(len(block)), own_row]
        total += float((near @ counts - own).sum())
    return total / (len(sampled) * (len(answered) - 1))


def _vectors(texts: Sequence[str], encoder: TextEncoder) -> NDArray[np.float64]:
    # A model's output may hold lone surrogates, which no tokenizer reads.
    clean = [text.encode("utf8", "replace").decode("utf8") for text in texts]
    with torch.inference_mode():
        vectors = encoder.encode(clean).detach().cpu().double().numpy()
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise MetricError(f"the text encoder gave NaN for {texts[row]!r}: expected a unit vector.")
    return np.asarray(vectors, dtype=np.float64)
