"""Reasoning-chain pruning: chains are ranked and examined as wholes (Eq. 8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import overload

import torch
from torch import Tensor

from vispath_lit.protocols import ChainExaminer, ChainScorer, TextStage
from vispath_lit.search.discovery import Discovery
from vispath_lit.search.ranking import staged_top, top_per_group
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Analysis, Intents, Path, Paths, Query


def objective_texts(
    queries: Sequence[Query], analyses: Sequence[Analysis], intents: Sequence[str]
) -> list[str]:
    """The second text of Eq. 8, Q ‖ S_Q ‖ q: joined by single spaces, empty parts left out."""
    return [
        " ".join(part for part in (query.text, analysis.sketch, intent) if part)
        for query, analysis, intent in zip(queries, analyses, intents, strict=True)
    ]


def rank_chains(
    discovery: Discovery,
    intents: Intents,
    objective: Tensor,
    stages: Sequence[TextStage],
    scorer: ChainScorer,
    settings: SearchSettings,
) -> Paths:
    """P_chain: the M2 best chains of each question by Eq. 8, best first; ties keep the path order.

    An early text stage passes on `keep * M3` chains a question, so that with one the result may hold fewer.

    Args:
        objective: `[S, d]`, SBERT(Q ‖ S_Q ‖ q) of each question.
    """
    paths = discovery.paths
    if not len(paths):
        return paths

    def score(stage: TextStage, rows: Tensor) -> Tensor:
        chains = paths.select(rows)
        of_parent = discovery.parent[rows].to(intents.vectors.device)
        hop = Intents(intents.vectors[of_parent], intents.question, intents.texts)
        return scorer(chains, stage.chain_vectors(chains), objective, hop)

    best, scored, logits = staged_top(stages, score, paths.state, settings.m3, settings.m2)
    return paths.select(scored[best], logits[best])


def rank_by_edge(discovery: Discovery, settings: SearchSettings) -> Paths:
    """The ablation without chain pruning: the M2 best paths of each question by their last edge's score."""
    paths = discovery.paths
    return paths.select(top_per_group(paths.scores, paths.state, settings.m2))


class Chains(Sequence[Path]):
    """Neighbouring rows of `Paths` as records that are made when somebody looks: many examiners never do."""

    def __init__(self, paths: Paths, low: int, count: int) -> None:
        self._paths = paths
        self._rows = range(low, low + count)

    @cached_property
    def _records(self) -> list[Path]:
        return self._paths.select(torch.tensor(self._rows, dtype=torch.long)).records()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> list[Path]: ...
    def __getitem__(self, place: int | slice) -> Path | list[Path]:
        return self._records[place]


def split(paths: Paths, states: int) -> list[Chains]:
    """The paths of each of `states` questions, in their order."""
    counts = torch.bincount(paths.state, minlength=states).tolist()
    return [Chains(paths, end - count, count) for end, count in zip(accumulate(counts), counts, strict=True)]


def by_state(paths: Paths, states: int) -> list[tuple[Path, ...]]:
    """The records of each of `states` questions' paths, where somebody looks at all of them."""
    counts = torch.bincount(paths.state, minlength=states).tolist()
    records = paths.records()
    return [tuple(records[end - count : end]) for end, count in zip(accumulate(counts), counts, strict=True)]


def pick(chains: Sequence[Path], chosen: Sequence[int], settings: SearchSettings) -> list[int]:
    """Positions of the paths kept of one question's chains: at most M3, best first.

    Args:
        chains: the M2 chains, best first.
        chosen: the examination's pick; empty falls back to all of them.
    """
    positions = sorted(set(chosen)) if chosen else list(range(len(chains)))
    if settings.distinct_relations:
        seen: set[tuple[int, ...]] = set()
        repeats: list[int] = []
        fresh: list[int] = []
        for position in positions:
            relations = chains[position].relations
            (repeats if relations in seen else fresh).append(position)
            seen.add(relations)
        return sorted([*fresh, *repeats][: settings.m3])
    return positions[: settings.m3]


def examine(
    queries: Sequence[Query], chains: Paths, examiner: ChainExaminer, settings: SearchSettings
) -> Paths:
    """P: the chains that the examination keeps, at most M3 a question by their score."""
    records = split(chains, len(queries))
    chosen = examiner.examine(queries, records)
    rows, offset = [], 0
    for mine, picked in zip(records, chosen, strict=True):
        rows += [offset + position for position in pick(mine, picked, settings)]
        offset += len(mine)
    return chains.select(torch.tensor(rows, dtype=torch.long))
