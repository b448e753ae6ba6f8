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
        return [granted(query) or self.mentioned(query.text, query.image is not None) for query in queries]

    def mentioned(self, text: str, with_image: bool = False) -> list[Candidate]:
        """The candidates of one question's words.

        Args:
            with_image: the question has an image, and words such as "country" or "frontier county" are rather
                about that than names: only what is written as a name is one.
        """
        found: dict[int, Candidate] = {}
        mentions = self.names.find_mentions(text)
        if with_image:
            mentions = [one for one in mentions if written_as_name(text, *one.span)]
        for mention in sorted(mentions, key=lambda one: one.span[0] - one.span[1]):
            score = (mention.span[1] - mention.span[0]) / len(text)
            for entity in mention.entities:
                found.setdefault(entity, Candidate(entity, score, "name"))
        return list(found.values())[: self.keep]


def written_as_name(text: str, begin: int, end: int) -> bool:
    """Whether a span holds a capital, or a script without any, that no sentence's beginning accounts for."""
    letters = [i for i in range(begin, end) if text[i].isalpha()]
    opens = not text[:begin].strip() or text[:begin].rstrip()[-1] in ".!?:"
    return any(not text[i].islower() and not (opens and i == letters[0]) for i in letters)
