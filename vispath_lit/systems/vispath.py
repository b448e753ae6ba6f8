"""VisPath: Algorithm 1 with whatever parts it was built from."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import (
    AnswerSelector,
    ChainExaminer,
    ChainScorer,
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
from vispath_lit.types import Prediction, Query


class VisPath:
    """The `System` that searches the graph with its parts, `batch_size` questions at a time.

    Raises:
        ConfigError: a batch size below 1.
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
        batch_size: int = 64,
        name: str = "vispath",
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"system.batch_size is {batch_size}; it must be at least 1")
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
        self._name = name

    @property
    def name(self) -> str:
        return self._name

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        """Exactly one prediction a query, in order; a batch's seconds are shared evenly."""
        predictions: list[Prediction] = []
        for low in range(0, len(queries), self.batch_size):
            batch = queries[low : low + self.batch_size]
            begin = time.perf_counter()
            found = self.searcher.search(batch)
            seconds = (time.perf_counter() - begin) / len(batch)
            predictions += [replace(one, cost=replace(one.cost, seconds=seconds)) for one in found]
        return predictions
