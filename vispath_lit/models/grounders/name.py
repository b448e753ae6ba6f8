"""Start entities that the question names, for questions without an image."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.errors import ConfigError
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.topic import granted
from vispath_lit.types import Analysis, Candidate, Query


class NameGrounder:
    """The entities whose label or alias stands in the question, the longest mention first.

    Mentions of one length keep their order in the text, entities of one name that of the index. The score
    is the share of the question that the mention covers.

    Args:
        keep: candidates a question, K.
    """

    def __init__(self, graph: KnowledgeGraph, keep: int = 5) -> None:
        if keep < 1:
            raise ConfigError(f"grounder.keep is {keep}; it must be at least 1")
        self.names = NameIndex(graph)
        self.keep = keep

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return [granted(query) or self.mentioned(query.text) for query in queries]

    def mentioned(self, text: str) -> list[Candidate]:
        """The candidates of one question's words."""
        found: dict[int, Candidate] = {}
        mentions = self.names.find_mentions(text)
        for mention in sorted(mentions, key=lambda one: one.span[0] - one.span[1]):
            score = (mention.span[1] - mention.span[0]) / len(text)
            for entity in mention.entities:
                found.setdefault(entity, Candidate(entity, score, "name"))
        return list(found.values())[: self.keep]
