"""Training states: a question at a hop with its kept partial paths, their candidate edges and labels.

A state holds an accepted prefix and the distractors that a search keeps beside it. Its candidate edges
come from `kg.frontier.expand`, the expansion of the search itself, so that nothing is learned on one
candidate set and used on another. States are drawn hop by hop, because the distractors of a hop are
extensions of the paths of the hop before: the model's own best ones, or siblings at random.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from PIL.Image import Image
from torch import Tensor

from vispath_lit.data.supervision import AcceptedPaths, Supervision
from vispath_lit.errors import DataError, at_least
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Analysis, Frontier, Paths, Query, Question, States

log = logging.getLogger(__name__)

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NONE = -1


@dataclass(frozen=True, slots=True)
class StateSettings:
    """How states are drawn.

    Attributes:
        paths: partial paths a state, the accepted one included (M3 of the search).
        edges: candidate edges a path in training: every positive and a seeded sample of the others, in which
            relations count evenly.
        unknown: whether the only edge of a relation that no accepted path walks, either way, is a candidate
            too. With it the model learns that such a relation is never right. One of several such edges is a
            candidate in any case: a question with one answer does not end there.
        inverse, hub_cap, backtrack: as in the search; see `kg.frontier.expand`.
    """

    paths: int = 3
    edges: int = 128
    unknown: bool = True
    inverse: bool = True
    hub_cap: int | None = None
    backtrack: bool = True

    def __post_init__(self) -> None:
        at_least(1, "states", paths=self.paths, edges=self.edges)


@dataclass(frozen=True, slots=True, eq=False)
class HopStates:
    """S states of equal hop with labelled candidate edges.

    Attributes:
        states: S queries, analyses and P partial paths; a state's accepted prefix comes first.
        question: `[S]` long, each state's question within the batch.
        frontier: E candidate edges of the P paths.
        weight: `[E]` float: 0 a negative, else the weight of the accepted path that the edge is on.
        accepted: `[P]` bool, whether a path is the prefix of an accepted one.
        gold_edge: `[S]` long, the edge that the state's drawn gold path takes; -1 where `hub_cap` or
            `backtrack` keep it from the frontier.
        parent_edge: `[P]` long, the edge of the hop before that a path was extended by; empty at hop 1.
    """

    states: States
    question: Tensor
    frontier: Frontier
    weight: Tensor
    accepted: Tensor
    gold_edge: Tensor
    parent_edge: Tensor

    @property
    def edge_state(self) -> Tensor:
        """`[E]` long, the state of each edge."""
        return self.frontier.paths.state[self.frontier.edge_path]


class QuestionBatch:
    """B questions, each with one of its accepted paths drawn, and the states that lead along it.

    The same seed and the same distractors give the same states.

    Attributes:
        queries: B queries.
        analyses: B analyses.
        hops: `[B]` long, the depth to predict.
        lengths: `[B]` long, hops of the drawn path.
        walked: `[2R]` bool, the signed relations whose lone edges are candidates; all of them where None.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        settings: StateSettings,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        accepted: Sequence[AcceptedPaths],
        seed: Sequence[int],
        walked: Bools | None = None,
    ) -> None:
        self.graph = graph
        self.walked = walked
        self.settings = settings
        self.queries = queries
        self.analyses = analyses
        self.accepted = accepted
        self.hops = torch.tensor([paths.hops for paths in accepted])
        self.rng = np.random.default_rng(seed)
        self.drawn = [_draw(paths, self.rng) for paths in accepted]
        self.lengths = torch.tensor([self._length(question) for question in range(len(queries))])

    def __len__(self) -> int:
        return len(self.queries)

    def first(self) -> HopStates:
        """The states of hop 1: each question at its start, without distractors."""
        number = torch.arange(len(self))
        starts = Paths.starts(torch.tensor([paths.start for paths in self.accepted]), number)
        return self._label(starts, number, np.ones(len(self), dtype=bool), torch.zeros(0, dtype=torch.long))

    def next(self, previous: HopStates, distractors: Tensor) -> HopStates | None:
        """The states one hop on; None once no drawn path goes on.

        Args:
            previous: the states before.
            distractors: edges of `previous.frontier`, best first within a state: the extensions that
                stand beside the accepted one, at most `settings.paths - 1` a state.
        """
        hop = previous.frontier.paths.length + 1
        question, gold = previous.question.numpy(), previous.gold_edge.numpy()
        goes_on = np.array([self._length(q) > hop for q in question]) & (gold != NONE)
        if not goes_on.any():
            return None
        edge_state = previous.edge_state.numpy()
        others = distractors.numpy()
        others = others[gold[edge_state[others]] != others]
        rows = np.concatenate([gold[goes_on], others])
        rows = rows[goes_on[edge_state[rows]]]
        rows = rows[np.argsort(edge_state[rows], kind="stable")]
        rows = rows[_rank(edge_state[rows]) < self.settings.paths]
        number = np.cumsum(goes_on) - 1
        edges = previous.frontier.select(torch.from_numpy(rows))
        longer = edges.paths.extend(edges.edge_path, edges.relation, edges.tail)
        state = torch.from_numpy(number[edge_state[rows]])
        longer = Paths(longer.entities, longer.relations, state, torch.zeros(len(rows)))
        accepted = previous.weight.numpy()[rows] > 0
        return self._label(longer, previous.question[goes_on], accepted, torch.from_numpy(rows))

    def siblings(self, states: HopStates) -> Tensor:
        """Rejected edges at random, at most `settings.paths - 1` a state.

        A relation is as likely as any other, however many tails it has.
        """
        frontier = states.frontier
        rejected = np.flatnonzero(states.weight.numpy() == 0)
        group = self._groups(frontier)
        key = _balanced_keys(group[rejected], self.rng)
        state = states.edge_state.numpy()[rejected]
        order = np.lexsort((key, state))
        return torch.from_numpy(rejected[order[_rank(state[order]) < self.settings.paths - 1]])

    def _sample(self, frontier: Frontier, positive: Bools) -> Ints:
        """Rows of at most `settings.edges` edges a path and every positive, in their order.

        Relations are kept evenly: of a hub's thousands of tails of one relation a sample suffices.
        """
        if self.walked is None:
            return self._even(frontier, positive)
        several = _run_lengths(self._groups(frontier)) > 1
        rows = np.flatnonzero(self.walked[frontier.relation.numpy()] | several | positive)
        return rows[self._even(frontier.select(torch.from_numpy(rows)), positive[rows])]

    def _groups(self, frontier: Frontier) -> Ints:
        """`[E]`: one number for the edges of a path that have one signed relation; these are adjacent."""
        edge_path, relation = frontier.edge_path.numpy(), frontier.relation.numpy()
        groups: Ints = edge_path * (2 * self.graph.num_relations) + relation
        return groups

    def _even(self, frontier: Frontier, positive: Bools) -> Ints:
        edge_path, limit = frontier.edge_path.numpy(), self.settings.edges
        large = np.flatnonzero((np.bincount(edge_path) > limit)[edge_path])
        if not len(large):
            return np.arange(len(edge_path))
        group = self._groups(frontier)[large]
        key = np.where(positive[large], -np.inf, _balanced_keys(group, self.rng))
        keep = np.ones(len(edge_path), dtype=bool)
        keep[large] = positive[large]
        first = np.flatnonzero(np.diff(edge_path[large], prepend=-1))
        for low, high in zip(first, np.append(first[1:], len(large)), strict=True):
            # A path's smallest keys need no order.
            keep[large[low + np.argpartition(key[low:high], limit - 1)[:limit]]] = True
        return np.flatnonzero(keep)

    def _length(self, question: int) -> int:
        paths = self.accepted[question]
        return int((paths.relations[self.drawn[question]] != NONE).sum())

    def _label(self, paths: Paths, question: Tensor, accepted: Bools, parent_edge: Tensor) -> HopStates:
        """Expands the paths and labels their edges; `accepted` is `[P]`, `question` `[S]`."""
        settings = self.settings
        frontier = expand(
            self.graph,
            paths,
            inverse=settings.inverse,
            hub_cap=settings.hub_cap,
            backtrack=settings.backtrack,
        )
        asked = question.tolist()
        weight, gold = self._weights(frontier, accepted, asked)
        kept = self._sample(frontier, weight > 0)
        place = np.searchsorted(kept, gold)
        return HopStates(
            States([self.queries[q] for q in asked], [self.analyses[q] for q in asked], paths),
            question,
            frontier.select(torch.from_numpy(kept)),
            torch.from_numpy(weight[kept]),
            torch.from_numpy(accepted),
            torch.from_numpy(np.where(gold == NONE, NONE, place)),
            parent_edge,
        )

    def _weights(
        self, frontier: Frontier, accepted: Bools, question: Sequence[int]
    ) -> tuple[NDArray[np.float32], Ints]:
        """`[E]` weights (an accepted next step is a positive), and `[S]` the drawn paths' edges."""
        paths = frontier.paths
        edge_path, relation, tail = (
            x.numpy() for x in (frontier.edge_path, frontier.relation, frontier.tail)
        )
        weight = np.zeros(len(tail), dtype=np.float32)
        gold = np.full(len(question), NONE)
        bounds = np.searchsorted(edge_path, np.arange(len(paths) + 1))
        relations, tails, hop = paths.relations.numpy(), paths.entities.numpy()[:, 1:], paths.length
        for row in np.flatnonzero(accepted):
            state = int(paths.state[row])
            mine = self.accepted[question[state]]
            drawn = self.drawn[question[state]]
            low, high = bounds[row], bounds[row + 1]
            for step_relation, step_tail, value in mine.next_steps(relations[row], tails[row]):
                here = (relation[low:high] == step_relation) & (tail[low:high] == step_tail)
                weight[low:high][here] = value
                on_drawn = (
                    step_relation == mine.relations[drawn, hop]
                    and step_tail == mine.tails[drawn, hop]
                    and (mine.relations[drawn, :hop] == relations[row]).all()
                    and (mine.tails[drawn, :hop] == tails[row]).all()
                )
                if on_drawn and here.any():
                    gold[state] = low + int(np.argmax(here))
        return weight, gold


class StateBuilder:
    """Makes the batches of one split from its supervision.

    Args:
        images: whether batches hold the questions' pictures; one that cannot be read is told and left out.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        supervision: Supervision,
        analyses: Sequence[Analysis],
        settings: StateSettings,
        images: bool = False,
    ) -> None:
        self.graph = graph
        self.supervision = supervision
        self.analyses = analyses
        self.settings = settings
        self.images = images
        self.walked = None if settings.unknown else walked(supervision.accepted, graph.num_relations)

    def batch(self, indices: Sequence[int], seed: Sequence[int]) -> QuestionBatch:
        """The questions at `indices`; everything random in them follows from `seed` and `indices`."""
        questions = [self.supervision.questions[i] for i in indices]
        return QuestionBatch(
            self.graph,
            self.settings,
            [Query(question.text, self._picture(question)) for question in questions],
            [self.analyses[i] for i in indices],
            [self.supervision.accepted[i] for i in indices],
            [*seed, *indices],
            self.walked,
        )

    def _picture(self, question: Question) -> Image | None:
        if not self.images or question.image is None:
            return None
        try:
            return load_image(question.image)
        except DataError as error:
            log.warning("question %s is trained without its picture: %s", question.id, error)
            return None


def walked(accepted: Sequence[AcceptedPaths], relations: int) -> Bools:
    """`[2R]` bool: the signed relations that some accepted path walks, in this direction or the other."""
    found = np.zeros(2 * relations, dtype=bool)
    for paths in accepted:
        found[paths.relations[paths.relations != NONE]] = True
    either: Bools = found[:relations] | found[relations:]
    return np.concatenate([either, either])


def _balanced_keys(group: Ints, rng: np.random.Generator) -> NDArray[np.float64]:
    """`[n]` random keys whose smallest are drawn from the groups evenly, however large a group is.

    `group` is `[n]`, equal values adjacent.
    """
    # An exponential variable of rate 1 / size is `size` times one of rate 1.
    keys: NDArray[np.float64] = rng.exponential(size=len(group)) * _run_lengths(group)
    return keys


def _run_lengths(group: Ints) -> Ints:
    """`[n]`: of how many equal values each is one; equal values are adjacent."""
    size = np.diff(np.flatnonzero(np.diff(group, prepend=-1)), append=len(group))
    return np.repeat(size, size)


def _rank(group: Ints) -> Ints:
    """`[n]` position within its run of equal values; `group` is sorted."""
    return np.arange(len(group)) - np.searchsorted(group, group)


def _draw(paths: AcceptedPaths, rng: np.random.Generator) -> int:
    """One accepted path, as likely as its weight."""
    if len(paths.weights) == 1:
        return 0
    share = paths.weights.astype(np.float64)
    return int(rng.choice(len(share), p=share / share.sum()))
