"""Question analysis without a language model: patterns over the clause structure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vispath_lit.errors import ConfigError
from vispath_lit.models.analyzers.clauses import count_hops, sketch
from vispath_lit.models.analyzers.reference import find_reference
from vispath_lit.types import Analysis, Query


def depth_around(hops: int, d_max: int, sharpness: float) -> tuple[float, ...]:
    """Probabilities of 1 to `d_max` hops that fall off by `exp(-sharpness)` a hop away from `hops`."""
    weights = [math.exp(-sharpness * abs(d - min(hops, d_max))) for d in range(1, d_max + 1)]
    return tuple(weight / sum(weights) for weight in weights)


class PatternAnalyzer:
    """The fixed `QuestionAnalyzer`.

    Args:
        d_max: length of the depth distribution in hops.
        with_sketch: whether to write the sketch; without it Eq. 8's text is the question alone.
        sharpness: how fast the depth distribution falls off.
    """

    def __init__(self, d_max: int = 4, with_sketch: bool = True, sharpness: float = 1.5) -> None:
        if d_max < 1:
            raise ConfigError(f"analyzer.d_max is {d_max}; it must be at least 1")
        if not sharpness > 0:
            raise ConfigError(f"analyzer.sharpness is {sharpness}; it must be above 0")
        self.d_max = d_max
        self.with_sketch = with_sketch
        self.sharpness = sharpness

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        return [self.read(query.text) for query in queries]

    def read(self, question: str) -> Analysis:
        """The analysis of one question's words."""
        reference = find_reference(question)
        return Analysis(
            expression=reference.expression,
            head=reference.head,
            sketch=sketch(reference.rest) if self.with_sketch else "",
            depth=depth_around(count_hops(reference.rest), self.d_max, self.sharpness),
        )
