"""EmbedKGQA (Saxena et al., ACL 2020): the question is a relation of a knowledge graph embedding.

1. ComplEx is pre-trained on the triples (`models/complex.py`).
2. The question becomes the sentence encoder's vector.
3. A linear map makes a relation of it, as wide as an entity.
4. Batch norm and dropout, then the ComplEx score of (start, question, e) against every entity e.
5. Several answers are several targets, smoothed.
6. The loss is the divergence of the normalised targets from the softmax of the scores.
7. Entities stay as they were pre-trained, or move under an L3 penalty.
8. Optionally triples are one-hop questions: a relation's label asks for its tails.
9. The start itself is no answer; the best entities are ranked.

It walks no path, so it has none to show. It needs a start: a granted one, else the grounder's first; without
any it abstains.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from vispath_lit.errors import ConfigError, DataError, at_least
from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.complex import ComplexSettings, compose, train_complex
from vispath_lit.progress import console, track
from vispath_lit.protocols import Grounder, QuestionAnalyzer, TextEncoder
from vispath_lit.types import Candidate, Cost, Prediction, Query, Question

BLOCK = 65_536  # Entities scored at once; a larger graph is scored block by block.
RANKED = 10


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """n questions: `texts`, start entities `[n]`, and for each the indices of its answers."""

    texts: list[str]
    starts: Tensor
    answers: list[Tensor]

    def __len__(self) -> int:
        return len(self.texts)


class QuestionEmbedding(nn.Module):
    """Steps 3 and 4: a question and a start to the vector whose dot product with an entity is its score."""

    def __init__(self, entities: int, text_dim: int, dim: int, dropout: float, frozen: bool) -> None:
        super().__init__()
        self.entities = nn.Parameter(torch.zeros(entities, 2 * dim), requires_grad=not frozen)
        self.relation = nn.Linear(text_dim, 2 * dim)
        self.head_norm = nn.BatchNorm1d(2 * dim)
        self.score_norm = nn.BatchNorm1d(2 * dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, questions: Tensor, starts: Tensor) -> Tensor:
        """`[B, 2k]` from `[B, d]` and `[B]`."""
        heads = self.dropout(self.head_norm(self.entities[starts]))
        relations = self.dropout(self.relation(questions))
        found: Tensor = self.dropout(self.score_norm(compose(heads, relations)))
        return found


class EmbedKGQA:
    """The `System`, and its training.

    Args:
        embedding: how ComplEx is pre-trained.
        epochs: passes over the questions at most; the one that is best on val is kept.
        patience: epochs without a better one on val before it stops.
        batch: questions a step.
        lr: learning rate of Adam.
        dropout: share of the numbers that a step leaves out.
        smoothing: share of the target that is spread over all entities.
        penalty: weight of the entities' cubed norm; 0 leaves them as they were pre-trained.
        triples_as_questions: pairs of an entity and a relation that join the questions, at most.
        batch_size: questions answered at once.

    Raises:
        ConfigError: a value outside its range.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        embedding: ComplexSettings,
        epochs: int = 40,
        patience: int = 5,
        batch: int = 128,
        lr: float = 1e-2,
        dropout: float = 0.0,
        smoothing: float = 0.05,
        penalty: float = 0.0,
        triples_as_questions: int = 0,
        batch_size: int = 256,
        name: str = "embedkgqa",
    ) -> None:
        at_least(1, "system", epochs=epochs, patience=patience, batch_size=batch_size)
        at_least(0, "system", lr=lr, penalty=penalty, triples_as_questions=triples_as_questions)
        if batch < 2:
            raise ConfigError(f"system.batch is {batch}; batch norm needs at least 2 questions")
        for key, share in (("dropout", dropout), ("smoothing", smoothing)):
            if not 0 <= share < 1:
                raise ConfigError(f"system.{key} is {share}; expected at least 0 and less than 1")
        self.graph = graph
        self.text_encoder = text_encoder
        self.analyzer = analyzer
        self.grounder = grounder
        self.embedding = embedding
        self.epochs = epochs
        self.patience = patience
        self.batch = batch
        self.lr = lr
        self.smoothing = smoothing
        self.penalty = penalty
        self.triples_as_questions = triples_as_questions
        self.batch_size = batch_size
        self._name = name
        self.weights = QuestionEmbedding(
            graph.num_entities, text_encoder.dim, embedding.dim, dropout, frozen=penalty == 0
        ).eval()

    @property
    def name(self) -> str:
        return self._name

    # Training

    def fit(self, questions: Sequence[Question], val: Sequence[Question], seed: int) -> None:
        """Steps 1 to 8.

        Raises:
            DataError: no question with a start and an answer in the graph.
        """
        train, held_out = self._examples(questions), self._examples(val)
        if len(train) < 2:
            raise DataError(
                f"of {len(questions)} training questions {len(train)} have start and answer in the graph; "
                "EmbedKGQA needs at least 2"
            )
        if self.triples_as_questions:
            train = _joined(train, self._one_hop(self.triples_as_questions, seed))
        self.weights.entities.data.copy_(train_complex(self.graph, self.embedding, seed))
        with torch.random.fork_rng(devices=[]):  # of the new weights and the dropout
            torch.manual_seed(seed)
            for layer in (self.weights.relation, self.weights.head_norm, self.weights.score_norm):
                layer.reset_parameters()
            self._epochs(train, held_out or train, seed)

    def _epochs(self, train: Examples, held_out: Examples, seed: int) -> None:
        """Trains until val gets no better; keeps the weights that were best there, the earliest on a tie."""
        vectors = self.text_encoder.encode(train.texts)
        optimizer = torch.optim.Adam([w for w in self.weights.parameters() if w.requires_grad], lr=self.lr)
        generator = torch.Generator().manual_seed(seed)
        best, since, kept = -1.0, 0, copy.deepcopy(self.weights.state_dict())
        for epoch in track(range(self.epochs), f"EmbedKGQA: {len(train)} questions"):
            self.weights.train()
            for rows in torch.split(torch.randperm(len(train), generator=generator), self.batch):
                if len(rows) > 1:
                    optimizer.zero_grad()
                    answers = [train.answers[i] for i in rows.tolist()]
                    loss = self._loss(vectors[rows], train.starts[rows], answers)
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimizer.step()
            self.weights.eval()
            first, tenth = self._hits(held_out)
            console.print(f"epoch {epoch + 1}: val Hits@1 {first:.3f}, Hits@10 {tenth:.3f}", highlight=False)
            since = 0 if first > best else since + 1
            if first > best:
                best, kept = first, copy.deepcopy(self.weights.state_dict())
            if since >= self.patience:
                break
        self.weights.load_state_dict(kept)

    def _loss(self, questions: Tensor, starts: Tensor, answers: Sequence[Tensor]) -> Tensor:
        """Step 6 without the targets' entropy, which no weight changes: -sum_e y_e log p_e a question.

        The targets are (1 - s) on each answer and 1 / N on every entity, divided by their sum.
        """
        entities = self.weights.entities
        queries: Tensor = self.weights(questions, starts)
        normaliser = log_partition(queries, entities)
        owner = torch.repeat_interleave(torch.tensor([len(a) for a in answers]))
        right = (queries[owner] * entities[torch.cat(list(answers))]).sum(dim=1)
        on_answers = torch.zeros_like(normaliser).index_add(0, owner, right - normaliser[owner])
        on_all = queries @ entities.mean(dim=0) - normaliser
        share, uniform = 1 - self.smoothing, float(self.smoothing > 0)
        total = share * torch.bincount(owner, minlength=len(starts)) + uniform
        loss = -((share * on_answers + uniform * on_all) / total).mean()
        return loss + self.penalty * entities.abs().pow(3).sum() / len(entities) if self.penalty else loss

    @torch.no_grad()
    def _hits(self, examples: Examples) -> tuple[float, float]:
        """Step 9: the shares of questions with an answer in first place, and among the first ten."""
        found = np.zeros(2)
        for low in range(0, len(examples), self.batch_size):
            high = min(low + self.batch_size, len(examples))
            ranked, _ = self._ranked(examples.texts[low:high], examples.starts[low:high])
            for row, right in zip(ranked, examples.answers[low:high], strict=True):
                hits = torch.isin(row, right)
                found += bool(hits[:1].any()), bool(hits.any())
        first, tenth = (found / max(len(examples), 1)).tolist()
        return first, tenth

    def _examples(self, questions: Sequence[Question]) -> Examples:
        """The questions whose start, and an answer that is not the start, the graph holds."""
        texts, starts, answers = [], [], []
        for question in questions:
            if question.topic_entity is None or not question.text.strip():
                continue
            ids = list(dict.fromkeys(question.answer_ids))
            start, *found = self.graph.entity_indices([question.topic_entity, *ids]).tolist()
            right = sorted({entity for entity in found if entity >= 0} - {start})
            if start >= 0 and right:
                texts.append(question.text)
                starts.append(start)
                answers.append(torch.tensor(right))
        return Examples(texts, torch.tensor(starts, dtype=torch.long), answers)

    def _one_hop(self, count: int, seed: int) -> Examples:
        """Step 8: drawn triples, each with all tails of its entity and relation."""
        graph = self.graph
        rng = np.random.default_rng(seed)
        drawn = np.sort(rng.permutation(graph.num_triples)[:count])
        heads = np.searchsorted(graph.out_indptr, drawn, side="right") - 1
        pairs = dict.fromkeys(zip(heads.tolist(), graph.out_relation[drawn].tolist(), strict=True))
        asked = []
        for head, relation in pairs:
            tails = follow(graph, head, [relation])
            if len(tails := tails[tails != head]):
                asked.append((graph.relation_label(relation), head, torch.from_numpy(tails)))
        starts = torch.tensor([head for _, head, _ in asked], dtype=torch.long)
        return Examples([text for text, _, _ in asked], starts, [tails for _, _, tails in asked])

    # Answering

    @torch.no_grad()
    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        """Exactly one prediction a query, in order."""
        begin = time.perf_counter()
        found: list[Prediction] = []
        for low in range(0, len(queries), self.batch_size):
            found += self._answered(queries[low : low + self.batch_size])
        seconds = (time.perf_counter() - begin) / max(len(queries), 1)
        return [replace(prediction, cost=Cost(seconds=seconds)) for prediction in found]

    def _answered(self, queries: Sequence[Query]) -> list[Prediction]:
        candidates = self.grounder.ground(queries, self.analyzer.analyze(queries))
        rows = [i for i, ranked in enumerate(candidates) if ranked]
        made = [Prediction("", None, "abstained", statement="no start was found")] * len(queries)
        if not rows:
            return made
        starts = torch.tensor([candidates[i][0].entity for i in rows])
        ranked, shares = self._ranked([queries[i].text for i in rows], starts)
        for i, entities, share in zip(rows, ranked.tolist(), shares.tolist(), strict=True):
            made[i] = self._prediction(entities, share, candidates[i])
        return made

    def _prediction(self, entities: list[int], share: float, candidates: Sequence[Candidate]) -> Prediction:
        """The answer; a graph of one entity has none beside the start."""
        entities = [entity for entity in entities if entity != candidates[0].entity]
        if not entities:
            return Prediction("", None, "abstained", candidates=tuple(candidates))
        return Prediction(
            answer=self.graph.label(entities[0]).strip() or self.graph.entity_id(entities[0]),
            answer_entity=entities[0],
            provenance="terminal",
            confidence=min(max(share, 0.0), 1.0),
            ranked=tuple(entities),
            answer_set=(entities[0],),
            candidates=tuple(candidates),
        )

    def _ranked(self, texts: Sequence[str], starts: Tensor) -> tuple[Tensor, Tensor]:
        """The best entities `[B, 10]` by score, the lower one on a tie, and the softmax share of the first.

        The start takes part in no rank and in no share.
        """
        queries = self.weights(self.text_encoder.encode(texts).float(), starts)
        entities, scores, sums = [], [], []
        for low in range(0, self.graph.num_entities, BLOCK):
            block = queries @ self.weights.entities[low : low + BLOCK].T
            own = ((low <= starts) & (starts < low + BLOCK)).nonzero().flatten()
            block[own, starts[own] - low] = -torch.inf
            best = _best(block, RANKED)
            entities.append(best + low)
            scores.append(block.gather(1, best))
            sums.append(block.logsumexp(dim=1))
        values, order = torch.sort(torch.cat(scores, dim=1), dim=1, descending=True, stable=True)
        shares = (values[:, 0] - torch.stack(sums).logsumexp(dim=0)).exp().nan_to_num(0.0)
        return torch.cat(entities, dim=1).gather(1, order[:, :RANKED]), shares


def _best(scores: Tensor, count: int) -> Tensor:
    """`[B, count]`: positions of each row's highest scores, the lower one on a tie (topk settles none)."""
    count = min(count, scores.shape[1])
    bounds = scores.topk(count, dim=1).values[:, -1:]
    rows = []
    for row, bound in zip(scores, bounds, strict=True):
        near = (row >= bound).nonzero().flatten()
        rows.append(near[torch.sort(row[near], descending=True, stable=True).indices[:count]])
    return torch.stack(rows)


def log_partition(queries: Tensor, entities: Tensor) -> Tensor:
    """`[B]`: log of the sum over all entities of exp(score); blocks are scored again for the gradient."""
    if len(entities) <= BLOCK:
        return _block(queries, entities)
    blocks = torch.split(entities, BLOCK)
    parts = [checkpoint(_block, queries, block, use_reentrant=False) for block in blocks]
    return torch.stack(parts).logsumexp(dim=0)


def _block(queries: Tensor, entities: Tensor) -> Tensor:
    return (queries @ entities.T).logsumexp(dim=1)


def _joined(first: Examples, second: Examples) -> Examples:
    starts = torch.cat([first.starts, second.starts])
    return Examples(first.texts + second.texts, starts, first.answers + second.answers)
