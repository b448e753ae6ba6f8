"""Lets a language model say a template's question more naturally, under the paper's rule.

The start is named by what the picture shows and by nothing else, and the answer is not named at all; what
breaks the rule is not taken, and the template stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from vispath_lit.data.bench.leaks import tells
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend
from vispath_lit.types import ChatMessage, ChatRequest

LONGEST = 400  # characters of a question
BATCH = 32

RULES = """\
You write questions for a benchmark about pictures. You are given a stiff question that was made from a path \
in a knowledge graph. Say the same in one natural English question.
- The entity in the picture is referred to only by what can be seen, as in "the city in the picture": never \
by its name, and never by a description that would identify it without the picture.
- Keep every step of the chain, in its order; name no entity on the way and not the answer.
- Ask for one answer only."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in the template's words, with its path."""

    text: str
    entities: tuple[int, ...]
    relations: tuple[int, ...]


Rewrite = Callable[[Sequence[Asked]], Sequence[str | None]]
"""Gives each question new words, or None where it has none."""


class Reworded(BaseModel):
    """The shape of a model's answer."""

    question: str


class ChatRewrite:
    """A `Rewrite` by a chat back end; what the model sees of the path is relation labels and entity types."""

    def __init__(self, graph: KnowledgeGraph, backend: ChatBackend) -> None:
        self._graph, self._backend = graph, backend

    def __call__(self, asked: Sequence[Asked]) -> list[str | None]:
        found: list[str | None] = []
        for start in range(0, len(asked), BATCH):
            requests = [self._request(one) for one in asked[start : start + BATCH]]
            found += [reply.value.question or None for reply in self._backend.complete(requests)]
        return found

    def _request(self, asked: Asked) -> ChatRequest[Reworded]:
        types = self._graph.types(asked.entities)
        labels = self._graph.relation_labels()
        steps = [f"[{types[0] or 'entity'} in the picture]"]
        steps += [
            f"--{labels[r]}--> [{t or 'entity'}]" for r, t in zip(asked.relations, types[1:], strict=True)
        ]
        content = f"Path: {' '.join(steps)}\nQuestion: {asked.text}"
        messages = (ChatMessage("system", (RULES,)), ChatMessage("user", (content,)))
        return ChatRequest("bench_question", messages, Reworded, Reworded(question=""))


def acceptable(graph: KnowledgeGraph, text: str | None, entities: Sequence[int]) -> bool:
    """Whether new words are a question that names no entity of the path."""
    if (
        text is None
        or not text.strip()
        or len(text) > LONGEST
        or not text.rstrip().endswith(("?", "？", "؟"))
    ):
        return False
    return not any(tells(graph, text, entity) for entity in entities)
