"""The distribution of question lengths as a chart, like the paper's Figure 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from markupsafe import Markup

from vispath_lit.evaluation.charts import Bar, grouped_bars

BINS = 10
"""Bars, at most."""


def length_chart(lengths: Mapping[str, int]) -> Markup:
    """Share of questions by their number of words, in bins of equal width.

    Args:
        lengths: number of words (as text, as JSON has it) to questions.
    """
    counts = {int(words): count for words, count in lengths.items()}
    total = sum(counts.values())
    low, high = min(counts, default=0), max(counts, default=0)
    width = -(-(high - low + 1) // BINS)
    binned: Counter[int] = Counter()
    for words, count in counts.items():
        binned[(words - low) // width] += count
    groups = {}
    for place in range((high - low) // width + 1):
        first, last = low + place * width, min(high, low + place * width + width - 1)
        name = str(first) if first == last else f"{first}–{last}"
        groups[name] = {"questions": Bar(binned[place] / max(1, total))}
    return grouped_bars(groups, "questions by number of words")
