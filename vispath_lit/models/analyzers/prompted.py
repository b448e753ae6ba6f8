"""Question analysis by a language model: one call for expression and head, one for sketch and depth."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.chat.prompts import reference, sketch
from vispath_lit.errors import ConfigError
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.protocols import ChatBackend
from vispath_lit.types import Analysis, Query

MAX_SKETCH = 300  # characters of S_Q


class PromptedAnalyzer:
    """The prompted `QuestionAnalyzer`; its fallback is the fixed one's reading.

    Args:
        d_max: length of the depth distribution in hops; a deeper prediction counts as this.
    """

    def __init__(self, chat: ChatBackend, d_max: int = 4) -> None:
        if d_max < 1:
            raise ConfigError(f"analyzer.d_max is {d_max}; it must be at least 1")
        self.chat = chat
        self.d_max = d_max
        self._fixed = PatternAnalyzer(d_max)

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        fixed = self._fixed.analyze(queries)
        references = self.chat.complete(
            [
                reference.PROMPT.request(
                    {"question": query.text},
                    reference.Reference(expression=one.expression, head=one.head),
                    query,
                )
                for query, one in zip(queries, fixed, strict=True)
            ]
        )
        sketches = self.chat.complete(
            [
                sketch.PROMPT.request(
                    {"question": query.text, "expression": found.value.expression},
                    sketch.Sketch(
                        relations=one.sketch.split(", ")[:16] if one.sketch else [], depth=one.hops
                    ),
                    query,
                )
                for query, one, found in zip(queries, fixed, references, strict=True)
            ]
        )
        return [
            Analysis(
                expression=found.value.expression,
                head=found.value.head,
                sketch=", ".join(plan.value.relations)[:MAX_SKETCH],
                depth=tuple(float(d == min(plan.value.depth, self.d_max)) for d in range(1, self.d_max + 1)),
            )
            for found, plan in zip(references, sketches, strict=True)
        ]
