"""Chain examination by a language model, over the schemas of the chains' relations."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.chat.prompts import chain_judging
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend
from vispath_lit.types import ChatRequest, Path, Query

EXAMPLES = 3  # ends that are shown of a schema

Schemas = dict[tuple[int, ...], list[int]]


class PromptedExaminer:
    """The prompted `ChainExaminer`: keeps all chains of the schemas that the model calls sound.

    Where all chains have one schema nothing is asked: kept or not, the best of them stay.
    """

    def __init__(self, graph: KnowledgeGraph, chat: ChatBackend) -> None:
        self.graph = graph
        self.chat = chat

    def examine(self, queries: Sequence[Query], chains: Sequence[Sequence[Path]]) -> list[list[int]]:
        grouped = [schemas(mine) for mine in chains]
        asked = [i for i, one in enumerate(grouped) if len(one) > 1]
        replies = self.chat.complete([self._request(queries[i], chains[i], grouped[i]) for i in asked])
        picked: list[list[int]] = [[] for _ in queries]
        for i, reply in zip(asked, replies, strict=True):
            positions = list(grouped[i].values())
            kept = [n - 1 for n in dict.fromkeys(reply.value.keep) if 1 <= n <= len(positions)]
            picked[i] = sorted(position for k in kept for position in positions[k])
        return picked

    def _request(
        self, query: Query, chains: Sequence[Path], grouped: Schemas
    ) -> ChatRequest[chain_judging.Chosen]:
        shown = [
            {
                "number": number,
                "chain": [self.graph.relation_label(signed) for signed in relations],
                "walks": len(positions),
                "ends": self.graph.labels(list(dict.fromkeys(chains[i].end for i in positions))[:EXAMPLES]),
            }
            for number, (relations, positions) in enumerate(grouped.items(), start=1)
        ]
        start = self.graph.label(chains[0].entities[0])
        data = {"question": query.text, "start": start, "schemas": shown}
        return chain_judging.PROMPT.request(data, chain_judging.Chosen(keep=[]), query)


def schemas(chains: Sequence[Path]) -> Schemas:
    """Positions of the chains of each relation sequence, by its best chain."""
    found: Schemas = {}
    for position, chain in enumerate(chains):
        found.setdefault(chain.relations, []).append(position)
    return found
