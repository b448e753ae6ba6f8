"""What the tests of the prompted rivals share: a scripted back end that shows what each step was asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.scripted import ScriptedModel
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.protocols import TextStage
from vispath_lit.types import Analysis, Candidate, ChatRequest, Cost, Paths, Prediction, Query, Rows

Answer = Mapping[str, Any] | str | Callable[[dict[str, Any]], Mapping[str, Any] | str]


class Script:
    """A back end whose answers are given by step, each a value or a function of what was asked.

    A step that is not given has an answer that cannot be read, so that its fallback is taken.
    """

    def __init__(self, **steps: Answer) -> None:
        self.steps = dict(steps)
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.requests: list[ChatRequest[Any]] = []
        self.model = ScriptedModel(self._said)
        self.client = ChatClient(self.model, concurrency=1)

    def _said(self, request: ChatRequest[Any]) -> Any:
        shown = request.messages[1].parts[-1]
        assert isinstance(shown, str)
        data: dict[str, Any] = json.loads(shown)
        if len(request.messages) == 2:  # not the second try after an answer that could not be read
            self.asked.append((request.step, data))
            self.requests.append(request)
        answer = self.steps.get(request.step, "no json")
        return answer(data) if callable(answer) else answer

    def of(self, step: str) -> list[dict[str, Any]]:
        """What a step was asked, in order."""
        return [data for name, data in self.asked if name == step]

    @property
    def order(self) -> list[str]:
        """The steps in the order in which they were asked."""
        return [name for name, _ in self.asked]

    def count(self, name: str) -> int:
        """A count of the back end, such as `tog_judge.fallback`."""
        return self.client.usage().get(name, 0)


def numbers_of(items: Sequence[Mapping[str, Any]], *texts: str) -> list[int]:
    """The numbers of the items with these texts."""
    return [item["number"] for text in texts for item in items if item["text"] == text]


class WordEncoder:
    """A bag of hashed words: texts that share words are near each other."""

    dim = 512
    fingerprint = "words"

    def encode(self, texts: Sequence[str]) -> Tensor:
        rows = torch.zeros(len(texts), self.dim)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace("?", "").replace(",", "").split():
                row[int(hashlib.sha256(word.encode("utf8", "replace")).hexdigest(), 16) % self.dim] += 1
        return torch.nn.functional.normalize(rows, dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("no rival reads tokens")


class ExactTexts:
    """Every text embedded as it is."""

    keep = None
    texts = None

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph
        self.encoder = WordEncoder()

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self,)

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        texts = edge_texts(self.graph, relation, tail)
        return Rows(self.encoder.encode(texts), torch.arange(len(texts)))

    def chain_vectors(self, chains: Paths) -> Rows:
        texts = verbalize(self.graph, chains)
        return Rows(self.encoder.encode(texts), torch.arange(len(texts)))


class TopicOnly:
    """Analyses nothing; starts at a granted topic, at `seen` where there is a picture, else nowhere."""

    def __init__(self, seen: Sequence[int] = ()) -> None:
        self.seen = seen

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        return [Analysis("", "", "", (1.0,)) for _ in queries]

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return [self._start(query) for query in queries]

    def _start(self, query: Query) -> list[Candidate]:
        if query.topic is not None:
            return [Candidate(query.topic, 1.0, "topic")]
        if query.image is None:
            return []
        return [Candidate(entity, 1 / rank, "image") for rank, entity in enumerate(self.seen, 1)]


def free_of_time(predictions: Sequence[Prediction]) -> list[Prediction]:
    return [replace(one, cost=replace(one.cost, seconds=0.0)) for one in predictions]


NO_COST = Cost()
