"""VisPath: Algorithm 1 with whatever parts it was built from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import torch

from vispath_lit.encoders.threads import side_by_side
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import (
    AnswerSelector,
    ChainExaminer,
    ChainScorer,
    ChatBackend,
    EdgeScorer,
    EvidenceJudge,
    Grounder,
    IntentModel,
    QuestionAnalyzer,
    TextEncoder,
    TextProvider,
)
from vispath_lit.search.loop import Searcher
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Bill, Prediction, Query


class VisPath:
    """The `System` that searches the graph with its parts.

    Args:
        batch_size: questions searched at once, at most; the threads share them evenly.
        threads: batches searched side by side; None takes torch's threads, and one where a GPU does the work.
        chat: what prompted parts ask, for the bill of each question; None where no part is prompted.

    Raises:
        ConfigError: a batch size or a number of threads below 1.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        texts: TextProvider,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        intent: IntentModel,
        edge_scorer: EdgeScorer,
        chain_scorer: ChainScorer,
        examiner: ChainExaminer,
        judge: EvidenceJudge,
        selector: AnswerSelector,
        search: SearchSettings,
        batch_size: int = 256,
        threads: int | None = None,
        chat: ChatBackend | None = None,
        name: str = "vispath",
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"system.batch_size is {batch_size}; it must be at least 1")
        if threads is not None and threads < 1:
            raise ConfigError(f"system.threads is {threads}; it must be at least 1, or null")
        self.searcher = Searcher(
            graph=graph,
            text_encoder=text_encoder,
            texts=texts,
            analyzer=analyzer,
            grounder=grounder,
            intent=intent,
            edge_scorer=edge_scorer,
            chain_scorer=chain_scorer,
            examiner=examiner,
            judge=judge,
            selector=selector,
            search=search,
        )
        self.batch_size = batch_size
        self.threads = threads
        self.chat = chat
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        """Exactly one prediction a query, in order; the seconds are shared evenly."""
        begin = time.perf_counter()
        threads = self.threads or (1 if torch.cuda.is_available() else torch.get_num_threads())
        size = max(ceil(min(self.batch_size, len(queries)) / threads), 1)
        batches = [queries[low : low + size] for low in range(0, len(queries), size)]
        found = [one for batch in side_by_side(self.searcher.search, batches, threads) for one in batch]
        seconds = (time.perf_counter() - begin) / max(len(queries), 1)
        bills = [Bill()] * len(found) if self.chat is None else self.chat.settle(queries)
        return [settled(one, bill, seconds) for one, bill in zip(found, bills, strict=True)]


def settled(prediction: Prediction, bill: Bill, seconds: float) -> Prediction:
    """The prediction with its cost; it is `failed`, and empty, where the chat back end gave out on it."""
    cost = replace(bill.cost, vlm_forwards=prediction.cost.vlm_forwards, seconds=seconds)
    if bill.failed:
        return Prediction("", None, "failed", statement=bill.failed, cost=cost)
    return replace(prediction, cost=cost)
