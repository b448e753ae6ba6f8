"""The start that a protocol grants: it comes alone, whatever else a grounder could find."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.types import Analysis, Candidate, Query


def granted(query: Query) -> list[Candidate] | None:
    """The granted start entity as the only candidate; None where the protocol grants none."""
    return None if query.topic is None else [Candidate(query.topic, 1.0, "topic")]


class TopicGrounder:
    """The `Grounder` of protocols that always grant the start; it has no candidate for any other question."""

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return [granted(query) or [] for query in queries]
