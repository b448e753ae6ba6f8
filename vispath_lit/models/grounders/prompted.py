"""Recognition by a VLM (Eq. 1), names from an index, candidates filtered and ranked by an LLM."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from vispath_lit.chat.prompts import ranking, recognition
from vispath_lit.errors import ConfigError
from vispath_lit.kg.name_vectors import NameMatch
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.topic import granted
from vispath_lit.protocols import ChatBackend, TextEncoder
from vispath_lit.types import Analysis, Candidate, ChatRequest, Query

MAX_NAME = 200  # characters of a recognised name
NO_HEAD = "thing"


class PromptedGrounder:
    """The prompted `Grounder`.

    o = VLM(I, HEAD) is looked up among the names of the graph, and a language model ranks what is found by o
    and Q; an empty or invalid ranking falls back to the order of the look-up, an unnamed picture to the words
    that refer to the start. A question without a picture is looked up by these words, too. A candidate keeps
    the cosine by which its name was found as its score, wherever it is ranked.

    Args:
        retrieve: names that the index gives.
        keep: candidates a question, K.
        aliases: look among aliases too.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        chat: ChatBackend,
        text_encoder: TextEncoder,
        cache_dir: Path | str | None = None,
        retrieve: int = 20,
        keep: int = 5,
        aliases: bool = False,
    ) -> None:
        if not 1 <= keep <= retrieve:
            raise ConfigError(f"grounder.keep is {keep}; it must be from 1 to grounder.retrieve, {retrieve}")
        self.graph = graph
        self.chat = chat
        self.names = NameIndex(graph, text_encoder, cache_dir, aliases)
        self.retrieve = retrieve
        self.keep = keep

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        ranked = [granted(query) or [] for query in queries]
        asked = [i for i, query in enumerate(queries) if query.topic is None]
        if not asked:
            return ranked
        mine, words = [queries[i] for i in asked], [analyses[i] for i in asked]
        names = self._recognised(mine, words)
        matches = self.names.search(names, self.retrieve)
        replies = self.chat.complete(
            [self._ranking(*one) for one in zip(mine, words, names, matches, strict=True)]
        )
        for i, found, reply in zip(asked, matches, replies, strict=True):
            origin: Literal["name", "image"] = "name" if queries[i].image is None else "image"
            order = _chosen(reply.value.ranking, len(found))[: self.keep]
            ranked[i] = [Candidate(found[k].entity, found[k].score, origin) for k in order]
        return ranked

    def _recognised(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[str]:
        """The name o of Eq. 1; without a picture the referring expression, without one the question."""
        named = [one.expression or query.text for query, one in zip(queries, analyses, strict=True)]
        seen = [i for i, query in enumerate(queries) if query.image is not None]
        replies = self.chat.complete(
            [
                recognition.PROMPT.request(
                    {"head": analyses[i].head or NO_HEAD},
                    recognition.Recognised(name=named[i]),
                    queries[i],
                    {"question": queries[i].image},
                )
                for i in seen
            ]
        )
        for i, reply in zip(seen, replies, strict=True):
            named[i] = reply.value.name.strip() or named[i]
        return [name[:MAX_NAME] for name in named]

    def _ranking(
        self, query: Query, analysis: Analysis, name: str, matches: Sequence[NameMatch]
    ) -> ChatRequest[ranking.Ranking]:
        """Names, o and Q with its referring expression: the paper gives the model no more."""
        labels = self.graph.labels([match.entity for match in matches])
        candidates = [{"number": n, "name": label} for n, label in enumerate(labels, start=1)]
        data = {
            "question": query.text,
            "expression": analysis.expression,
            "recognised": name,
            "candidates": candidates,
        }
        return ranking.PROMPT.request(data, ranking.Ranking(ranking=[]), query)


def _chosen(numbers: Sequence[int], count: int) -> list[int]:
    """Positions of the ranked numbers that exist, each once; all of them in their order where none does."""
    return [n - 1 for n in dict.fromkeys(numbers) if 1 <= n <= count] or list(range(count))
