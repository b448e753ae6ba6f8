"""A small world for the search: random graphs on disk, an encoder with exact ties, and the fixed parts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.protocols import Grounder, QuestionAnalyzer, TextProvider, TextStage
from vispath_lit.search.loop import Searcher
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Analysis, Candidate, Paths, Query, Rows

DIM = 12
Triple = tuple[int, int, int]


class HashEncoder:
    """Texts to unit vectors with four entries of +-1/2, by their hash.

    Cosines are exact multiples of 1/4 in any arithmetic, so that ties are many and real.
    """

    dim = DIM
    fingerprint = "hash"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def vector(self, text: str) -> list[float]:
        digest = hashlib.sha256(text.encode()).digest()
        row = [0.0] * DIM
        for i, place in enumerate(sorted(range(DIM), key=lambda d: digest[d])[:4]):
            row[place] = 0.5 if digest[DIM + i] % 2 else -0.5
        return row

    def encode(self, texts: Sequence[str]) -> Tensor:
        self.seen += texts
        return torch.tensor([self.vector(text) for text in texts]).reshape(-1, DIM)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("the search reads no tokens")


class ExactTexts:
    """The exact provider: one stage, each distinct text embedded once."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        encoder: HashEncoder,
        keep: int | None = None,
        texts: int | None = None,
    ) -> None:
        self.graph = graph
        self.encoder = encoder
        self.keep = keep
        self.texts = texts

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self,)

    def _rows(self, texts: list[str]) -> Rows:
        distinct = sorted(set(texts))
        place = {text: i for i, text in enumerate(distinct)}
        return Rows(self.encoder.encode(distinct), torch.tensor([place[text] for text in texts]))

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        return self._rows(edge_texts(self.graph, relation, tail))

    def chain_vectors(self, chains: Paths) -> Rows:
        return self._rows(verbalize(self.graph, chains))


@dataclass
class TableAnalyzer:
    """Gives each question the sketch and the depth written at its end: "... |sketch|2"."""

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        read = [query.text.split("|") for query in queries]
        return [
            Analysis("", "", sketch, tuple(float(d == int(hops)) for d in range(1, 6)))
            for _, sketch, hops in read
        ]


@dataclass
class TableGrounder:
    """Candidates by question text."""

    table: dict[str, list[int]]

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return [[Candidate(e, 1.0, "image") for e in self.table[query.text]] for query in queries]


@dataclass
class World:
    """A graph with everything a searcher needs; labels may repeat."""

    graph: KnowledgeGraph
    triples: list[Triple]
    entity_labels: list[str]
    relation_labels: list[str]
    encoder: HashEncoder

    def searcher(
        self,
        grounder: Grounder,
        search: SearchSettings,
        texts: TextProvider | None = None,
        analyzer: QuestionAnalyzer | None = None,
    ) -> Searcher:
        return Searcher(
            graph=self.graph,
            text_encoder=self.encoder,
            texts=texts or ExactTexts(self.graph, self.encoder),
            analyzer=analyzer or TableAnalyzer(),
            grounder=grounder,
            intent=QuestionIntent(self.encoder),
            edge_scorer=FixedEdgeScorer(),
            chain_scorer=FixedChainScorer(),
            examiner=NoExaminer(),
            judge=DepthJudge(self.graph),
            selector=BestPathSelector(self.graph),
            search=search,
        )


WorldMaker = Callable[[list[Triple], list[str], list[str]], World]
