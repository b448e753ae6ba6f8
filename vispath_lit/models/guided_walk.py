"""The search's walk with the accepted path forced into the beam: the losses of a batch over all its hops.

The distractors of a hop are the model's best wrong chains of the hop before, or siblings at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vispath_lit.data.states import HopStates, QuestionBatch
from vispath_lit.errors import ConfigError
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.frozen import frozen
from vispath_lit.models.intents.learned import Reading
from vispath_lit.models.intents.picture import Seen
from vispath_lit.models.losses import (
    depth_cross_entropy,
    listwise_cross_entropy,
    listwise_hits,
    segment_logsumexp,
)
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.picture_loss import picture_loss
from vispath_lit.models.ranking import best_first, rank_in_run
from vispath_lit.models.remembered import remembering
from vispath_lit.protocols import TextEncoder, TextProvider
from vispath_lit.types import Analysis, Intents, Paths, Query

ObjectiveTexts = Callable[[Sequence[Query], Sequence[Analysis], Sequence[str]], list[str]]


@dataclass(frozen=True, slots=True)
class WalkSettings:
    """What a training walk looks at and how its losses are weighed.

    Attributes:
        chain_edges: best edges a path that are extended to chains.
        chain_others: about as many edges a path at random are extended too: the chain scorer must know bad
            ones.
        keep: paths that the search keeps (M3), for the count of gold paths pruned.
        edge_weight, state_weight, chain_weight, depth_weight, stop_weight, picture_weight: of the losses
            over the edges of a path, over all edges of a state, over the chains of a state, of depth, of the
            judge's stop, and of what pictures tell by themselves.
    """

    chain_edges: int = 8
    chain_others: int = 2
    keep: int = 3
    edge_weight: float = 1.0
    state_weight: float = 0.5
    chain_weight: float = 1.0
    depth_weight: float = 0.5
    stop_weight: float = 0.5
    picture_weight: float = 1.0

    def __post_init__(self) -> None:
        if self.chain_edges < 1 or self.chain_others < 0 or self.keep < 1:
            raise ConfigError(f"training walks need chain_edges and keep of at least 1: {self}")


@dataclass(slots=True, eq=False)
class WalkResult:
    """Losses and hit counts of one batch.

    Attributes:
        losses: summed by name; already weighted.
        counts: (hits, of) by metric name.
    """

    losses: dict[str, Tensor] = field(default_factory=dict)
    counts: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, name: str, loss: Tensor) -> None:
        self.losses[name] = self.losses[name] + loss if name in self.losses else loss

    def count(self, name: str, hits: Tensor, of: Tensor | int) -> None:
        before = self.counts.get(name, (0.0, 0.0))
        self.counts[name] = before[0] + float(hits), before[1] + float(of)

    @property
    def loss(self) -> Tensor:
        return torch.stack(list(self.losses.values())).sum()


class GuidedWalk:
    """Walks batches of questions along their drawn accepted paths.

    Args:
        parts: give the logits.
        texts: gives the text vectors of edges and chains; its first stage is used, without a gradient.
        text_encoder: gives SBERT(Q ‖ S_Q).
        objective_texts: the search's own text of Eq. 8.
    """

    def __init__(
        self,
        parts: LearnedParts,
        texts: TextProvider,
        text_encoder: TextEncoder,
        objective_texts: ObjectiveTexts,
        settings: WalkSettings,
    ) -> None:
        self.parts = parts
        self.texts = texts
        self.text_encoder = text_encoder
        self.objective_texts = objective_texts
        self.settings = settings

    def run(self, batch: QuestionBatch, beam_share: float) -> WalkResult:
        """Losses over all hops; `beam_share` of the questions meet the model's own distractors."""
        with remembering():
            return self._run(batch, beam_share)

    def _run(self, batch: QuestionBatch, beam_share: float) -> WalkResult:
        result = WalkResult()
        reading = self.parts.intent.read(batch.queries)
        objective = self._objective(batch).to(reading.question.device)
        own_beam = torch.from_numpy(batch.rng.random(len(batch)) < beam_share)
        self._depth(batch, result)
        states: HopStates | None = batch.first()
        likelihood = torch.zeros(len(batch))
        while states is not None:
            intents = self.parts.intent(states.states, reading.select(states.question.to(objective.device)))
            self._stop(states, intents, reading, batch, result)
            scores = self._edges(states, intents, reading.seen, result)
            likelihood = extended_likelihood(states, scores, likelihood)
            rows = self._extended(states, scores, batch)
            best = self._chains(states, intents, objective, rows, likelihood, result)
            states = batch.next(states, self._distractors(batch, states, best, own_beam))
            if states is not None:
                likelihood = likelihood[states.parent_edge]
        return result

    def _objective(self, batch: QuestionBatch) -> Tensor:
        with frozen():
            texts = self.objective_texts(batch.queries, batch.analyses, [""] * len(batch))
            return self.text_encoder.encode(texts)

    def _depth(self, batch: QuestionBatch, result: WalkResult) -> None:
        depth = self.parts.depth
        if depth is None:
            return
        # The base's own analyses: those of the batch may hold the correction already.
        logits = depth.depth_logits(batch.queries, depth.base.analyze(batch.queries))
        hops = batch.hops.to(logits.device)
        result.add("depth", self.settings.depth_weight * depth_cross_entropy(logits, hops))
        result.count("depth_hit", (logits.argmax(dim=1) + 1 == hops).sum(), len(hops))

    def _stop(
        self, states: HopStates, intents: Intents, reading: Reading, batch: QuestionBatch, result: WalkResult
    ) -> None:
        """Each state's accepted path is unfinished; with its last edge it is complete."""
        stop, hop = self.parts.stop, states.frontier.paths.length + 1
        if stop is None:
            return
        ended = (batch.lengths[states.question] == hop) & (states.gold_edge >= 0)
        if hop > 1 and intents.hidden is not None:
            first = torch.searchsorted(states.states.paths.state, torch.arange(len(states.states)))
            self._stop_loss(stop.stop_logits(intents.hidden[first.to(intents.hidden.device)]), 0.0, result)
        if ended.any():
            edges = states.frontier.select(states.gold_edge[ended])
            longer = edges.paths.extend(edges.edge_path, edges.relation, edges.tail)
            paths = replace(longer, state=states.question[ended])
            self._stop_loss(stop.stop_logits(self.parts.intent.hidden(paths, reading)), 1.0, result)

    def _stop_loss(self, logits: Tensor, answerable: float, result: WalkResult) -> None:
        loss = F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, answerable))
        result.add("stop", self.settings.stop_weight * loss)
        result.count("stop_hit", ((logits > 0) == bool(answerable)).sum(), len(logits))

    def _edges(self, states: HopStates, intents: Intents, seen: Seen | None, result: WalkResult) -> Tensor:
        """The edge losses; gives the logits `[E]` without a gradient."""
        frontier, settings = states.frontier, self.settings
        with frozen():
            texts = self.texts.stages[0].edge_vectors(frontier.relation, frontier.tail)
        logits = self.parts.edge_logits(frontier, texts, intents, states.weight > 0)
        device = logits.device
        weight, path, state = (x.to(device) for x in (states.weight, frontier.edge_path, states.edge_state))
        by_path = listwise_cross_entropy(logits, weight, path, len(frontier.paths))
        by_state = listwise_cross_entropy(logits, weight, state, len(states.states))
        result.add("edge", settings.edge_weight * by_path + settings.state_weight * by_state)
        hits = listwise_hits(logits.detach(), weight, path, len(frontier.paths))
        result.count(f"edge_hit/{frontier.paths.length + 1}", *hits)
        if seen is not None and isinstance(scorer := self.parts.edge_scorer, LearnedEdgeScorer):
            told = picture_loss(states, intents, seen, logits, scorer)
            result.add("picture", settings.picture_weight * told)
        return logits.detach().cpu()

    def _extended(self, states: HopStates, scores: Tensor, batch: QuestionBatch) -> Tensor:
        """Rows of the edges that become chains, ascending: each path's best, a few others, every positive."""
        path, settings = states.frontier.edge_path, self.settings
        order = best_first(scores, path)
        size = torch.bincount(path)[path[order]]
        luck = torch.from_numpy(batch.rng.random(len(order))) * size
        chosen = (rank_in_run(path[order]) < settings.chain_edges) | (luck < settings.chain_others)
        return order[chosen | (states.weight[order] > 0)].sort().values

    def _chains(
        self,
        states: HopStates,
        intents: Intents,
        objective: Tensor,
        rows: Tensor,
        likelihood: Tensor,
        result: WalkResult,
    ) -> Tensor:
        """The chain loss of the edges at `rows`; gives them by state, best chain first."""
        edges, hop = states.frontier.select(rows), states.frontier.paths.length + 1
        longer = edges.paths.extend(edges.edge_path, edges.relation, edges.tail)
        chains = Paths(longer.entities, longer.relations, longer.state, longer.scores, likelihood[rows])
        with frozen():
            texts = self.texts.stages[0].chain_vectors(chains)
        device = objective.device
        vectors = intents.vectors.index_select(0, edges.edge_path.to(device))
        parent = Intents(vectors, intents.question, intents.texts)
        logits: Tensor = self.parts.chain_scorer(chains, texts, objective[states.question.to(device)], parent)
        weight, state = states.weight[rows].to(device), chains.state.to(device)
        loss = listwise_cross_entropy(logits, weight, state, len(states.states))
        result.add("chain", self.settings.chain_weight * loss)
        result.count(f"chain_hit/{hop}", *listwise_hits(logits.detach(), weight, state, len(states.states)))
        order = best_first(logits.detach().cpu(), chains.state)
        kept = order[rank_in_run(chains.state[order]) < self.settings.keep]
        alive = (
            torch.zeros(len(states.states)).index_add(0, chains.state[kept], states.weight[rows[kept]]) > 0
        )
        result.count(f"gold_pruned/{hop}", (~alive).sum(), len(alive))
        return rows[order]

    def _distractors(self, batch: QuestionBatch, states: HopStates, best: Tensor, own_beam: Tensor) -> Tensor:
        """Edges that extend beside the accepted one: the best chains' last edges, or siblings at random."""
        siblings = batch.siblings(states)
        own = own_beam[states.question]
        mine, theirs = own[states.edge_state[best]], ~own[states.edge_state[siblings]]
        return torch.cat([best[mine], siblings[theirs]])


def extended_likelihood(states: HopStates, scores: Tensor, likelihood: Tensor) -> Tensor:
    """`[E]`: each path's log-likelihood `[P]` plus the log-softmax of the edge among its state's edges."""
    state = states.edge_state
    step = scores - segment_logsumexp(scores, state, len(states.states))[state]
    return likelihood[states.frontier.edge_path] + step
