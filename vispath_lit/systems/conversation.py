"""What prompted rivals share: a question is a talk with a language model, and many talks go on at once.

A rival writes its steps as a generator, from the first to the last, for one question:

    (picked,) = yield [PROMPT.request(...)]  # the replies' values, each an answer or the request's fallback
    ...
    return prediction

`Conversational` runs the talks of a batch side by side: each round sends what all of them ask in one call.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from vispath_lit.errors import at_least
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend
from vispath_lit.systems.replies import MAX_TEXT, plain
from vispath_lit.types import Candidate, ChatRequest, Path, Prediction, Provenance, Query

T = TypeVar("T")
Step = Generator[list[ChatRequest[Any]], list[Any], T]  # asks for replies, ends with a T
Talk = Step[Prediction]
MAX_ANSWER = 300  # characters of an answer that are kept


class Conversational(ABC):
    """A `System` that talks to a language model.

    Args:
        batch_size: questions that talk at the same time.

    Raises:
        ConfigError: a batch size below 1.
    """

    def __init__(self, graph: KnowledgeGraph, chat: ChatBackend, batch_size: int, name: str) -> None:
        at_least(1, "system", batch_size=batch_size)
        self.graph = graph
        self.chat = chat
        self.batch_size = batch_size
        self.names = NameIndex(graph)
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    @abstractmethod
    def talks(self, queries: Sequence[Query]) -> list[Talk]:
        """One talk a query, none of them begun."""

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        """Exactly one prediction a query, in order; a question on which the back end gave out is `failed`."""
        found: list[Prediction] = []
        for low in range(0, len(queries), self.batch_size):
            batch = [replace(query) for query in queries[low : low + self.batch_size]]  # one bill each
            found += self._answered(batch)
        return found

    def _answered(self, queries: Sequence[Query]) -> list[Prediction]:
        begin = time.perf_counter()
        made = converse(self.chat, self.talks(queries))
        seconds = (time.perf_counter() - begin) / len(queries)
        found = []
        for prediction, bill in zip(made, self.chat.settle(queries), strict=True):
            if bill.failed:
                prediction = Prediction("", None, "failed", statement=bill.failed)
            found.append(replace(prediction, cost=replace(bill.cost, seconds=seconds)))
        return found

    def predicted(
        self,
        answer: str,
        provenance: Provenance,
        *,
        paths: Sequence[Path] = (),
        candidates: Sequence[Candidate] = (),
        statement: str = "",
    ) -> Prediction:
        """An answer in words as a prediction; none at all is `abstained`.

        The answer's entity is one of the paths that bears this name or alias, a path's end before others;
        else one of the graph. Paths that end there come first.
        """
        answer = plain(answer)[:MAX_ANSWER].strip()
        if not answer:
            provenance = "abstained"
        ends = [path.end for path in paths]
        entity = self.entity(answer, [*ends, *(e for path in paths for e in path.entities)])
        ordered = sorted(paths, key=lambda path: path.end != entity)  # stable
        ranked = dict.fromkeys([*([] if entity is None else [entity]), *(path.end for path in ordered)])
        return Prediction(
            answer=answer,
            answer_entity=entity,
            provenance=provenance,
            ranked=tuple(ranked),
            answer_set=() if entity is None else (entity,),
            paths=tuple(ordered),
            candidates=tuple(candidates),
            depth=max((len(path.relations) for path in paths), default=0),
            statement=statement[:MAX_TEXT],
        )

    def entity(self, name: str, near: Iterable[int] = ()) -> int | None:
        """The entity of a name or alias: the first of `near` that bears it, else the graph's first."""
        for written in dict.fromkeys((name, name.strip(" .,;:!?\"'"))):
            if not written:
                continue
            for entity in dict.fromkeys(near):
                if self.names.bears(entity, written):
                    return entity
            if found := self.names.exact(written):
                return found[0]
        return None

    def words(self, path: Path) -> str:
        """A path in one line."""
        steps = zip(path.relations, self.graph.labels(path.entities[1:]), strict=True)
        walked = "".join(f" -> {self.graph.relation_label(r)} -> {label}" for r, label in steps)
        return self.graph.label(path.entities[0]) + walked


def converse(chat: ChatBackend, talks: Sequence[Talk]) -> list[Prediction]:
    """The prediction that each talk ends with; one whose reply failed is closed, and its bill says why."""
    done: dict[int, Prediction] = {}
    asked: dict[int, list[ChatRequest[Any]]] = {}
    replies: dict[int, list[Any] | None] = dict.fromkeys(range(len(talks)))
    while replies:
        asked = {}
        for i, values in replies.items():
            try:
                asked[i] = next(talks[i]) if values is None else talks[i].send(values)
            except StopIteration as end:
                done[i] = end.value
        answered = iter(chat.complete([request for requests in asked.values() for request in requests]))
        replies = {}
        for i, requests in asked.items():
            mine = [next(answered) for _ in requests]
            if any(reply.outcome == "failed" for reply in mine):
                talks[i].close()
                done[i] = Prediction(
                    "", None, "failed", statement="; ".join(r.reason for r in mine if r.reason)
                )
            else:
                replies[i] = [reply.value for reply in mine]
    return [done[i] for i in range(len(talks))]
