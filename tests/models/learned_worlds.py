"""A world that can be learned: words as random vectors, questions as sequences of nicknames of relations."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.protocols import TextStage
from vispath_lit.types import Analysis, Frontier, Paths, Query, Question, Rows, States

DIM = 16


class WordEncoder:
    """A word is a random unit vector by its hash, a text the mean of its words."""

    dim = DIM
    fingerprint = "words"

    @staticmethod
    @cache
    def word(word: str) -> Tensor:
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
        return torch.from_numpy(np.random.default_rng(seed).standard_normal(DIM)).float()

    @cache  # noqa: B019
    def states(self, text: str) -> Tensor:
        """`[L, d]`: each word with its place."""
        words = text.split() or ["."]
        return torch.stack([self.word(word) + self.word(f"place {i}") for i, word in enumerate(words)])

    @cache  # noqa: B019
    def sentence(self, text: str) -> Tensor:
        return torch.nn.functional.normalize(self.states(text).mean(dim=0), dim=0)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        padded = torch.nn.utils.rnn.pad_sequence([self.states(text) for text in texts], batch_first=True)
        lengths = torch.tensor([len(self.states(text)) for text in texts])
        return padded, torch.arange(padded.shape[1]) < lengths[:, None]

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.stack([self.sentence(text) for text in texts]) if texts else torch.zeros(0, DIM)


class PlainTexts:
    """One stage, each distinct text embedded as it is."""

    keep = None
    texts = None

    def __init__(self, graph: KnowledgeGraph, encoder: WordEncoder) -> None:
        self.graph = graph
        self.encoder = encoder

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
class EvenAnalyzer:
    """Knows nothing of the depth but that shorter is likelier."""

    d_max: int = 3

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        share = np.linspace(2.0, 1.0, self.d_max)
        depth = tuple((share / share.sum()).tolist())
        return [Analysis("it", "thing", "plan" * (len(query.text) % 2), depth) for query in queries]


def ring_triples(entities: int = 40, relations: int = 6) -> list[tuple[int, int, int]]:
    """Relation r leads from every entity some r-dependent way around a ring."""
    return [(h, r, (h + 3 * r + 1) % entities) for h in range(entities) for r in range(relations)]


def ring_questions(
    count: int, seed: int, entities: int = 40, relations: int = 6, deepest: int = 3
) -> list[Question]:
    """Questions that name one to `deepest` relations by nicknames that share no word with the graph."""
    rng = np.random.default_rng(seed)
    questions = []
    for i in range(count):
        hops = int(rng.integers(1, deepest + 1))
        start = int(rng.integers(entities))
        here, path, words = start, [], []
        for r in rng.integers(0, relations, size=hops).tolist():
            here = (here + 3 * r + 1) % entities
            path.append((f"r{r}", f"e{here}"))
            words.append(f"nick{r}")
        questions.append(
            Question(
                id=f"q{i}",
                text=" then ".join(words),
                answers=(f"entity {here}",),
                answer_ids=(f"e{here}",),
                topic_entity=f"e{start}",
                gold_paths=(tuple(path),),
                hops=hops,
            )
        )
    return questions


def states_and_frontier(graph: KnowledgeGraph, hops: int, questions: int = 5) -> tuple[States, Frontier]:
    """Walks some paths a question, `hops` long, and expands them."""
    asked = ring_questions(questions, seed=3)
    generator = torch.Generator().manual_seed(0)
    state = torch.arange(questions).repeat_interleave(3)
    paths = Paths.starts(torch.randint(0, 40, (len(state),), generator=generator), state)
    for _ in range(hops):
        frontier = expand(graph, paths)
        pick = torch.randint(0, len(frontier), (len(state),), generator=generator)
        pick = torch.searchsorted(frontier.edge_path, torch.arange(len(state))) + pick % 12
        paths = paths.extend(torch.arange(len(state)), frontier.relation[pick], frontier.tail[pick])
    queries = [Query(q.text) for q in asked]
    return States(queries, EvenAnalyzer().analyze(queries), paths), expand(graph, paths)


def disturb(module: nn.Module) -> None:
    """Gives every weight, the zero ones too, some value."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=generator))
