"""The start entity: candidates and their graph-aware validation (Eq. 2-3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.similarity import grouped_dot
from vispath_lit.types import Candidate, Rows

# What Eq. 3's margin grows by for every rank below the second.
MARGIN_STEP = 0.01


def outgoing_relations(
    graph: KnowledgeGraph, entities: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Distinct outgoing (forward) relations of each entity.

    Returns:
        Two arrays `[n]`: the position in `entities`, non-decreasing, and the relation.
    """
    low = graph.out_indptr[entities]
    owner, edge = ranges(low, graph.out_indptr[entities + 1] - low)
    pairs = np.unique(owner * graph.num_relations + graph.out_relation[edge])
    return pairs // graph.num_relations, pairs % graph.num_relations


def alignment_scores(
    graph: KnowledgeGraph, entities: Tensor, question: Tensor, questions: Tensor, relations: Tensor
) -> Tensor:
    """Eq. 2: `s_k = max_r cos(SBERT(r), SBERT(Q))` over each candidate's outgoing relations; -1 for none.

    Args:
        entities: `[n]` long candidates of many questions.
        question: `[n]` long, non-decreasing: the question of each candidate.
        questions: `[S, d]` unit vectors of the questions.
        relations: `[R, d]` unit vectors of the relations' texts.

    Returns:
        `[n]`.
    """
    owner, relation = (torch.from_numpy(array) for array in outgoing_relations(graph, entities.numpy()))
    cosines = grouped_dot(Rows(relations, relation), question[owner], questions).float().cpu()
    best = torch.full((len(entities),), -1.0)
    return best.scatter_reduce(0, owner, cosines, "amax")


def promote(candidates: Sequence[Candidate], scores: Sequence[float], delta: float) -> list[Candidate]:
    """Eq. 3: the best-aligned k* >= 2 moves to the front if `s_k* - s_1 > delta + 0.01 (k* - 2)`.

    The others keep their order; of equal s_k the better rank is k*.
    """
    if len(candidates) < 2:
        return list(candidates)
    best = max(range(1, len(candidates)), key=lambda k: (scores[k], -k))
    if scores[best] - scores[0] > delta + MARGIN_STEP * (best - 1):
        return [candidates[best], *candidates[:best], *candidates[best + 1 :]]
    return list(candidates)


def validate(
    graph: KnowledgeGraph,
    ranked: Sequence[Sequence[Candidate]],
    questions: Tensor,
    relations: Tensor,
    delta: float,
) -> list[list[Candidate]]:
    """Graph-aware validation of the candidates of many questions (Eq. 2-3).

    Args:
        ranked: candidates of each question, best first.
        questions: `[S, d]` unit vectors of the questions.
        relations: `[R, d]` unit vectors of the relations' texts.
        delta: the margin.
    """
    sizes = torch.tensor([len(candidates) for candidates in ranked])
    entities = torch.tensor([c.entity for candidates in ranked for c in candidates], dtype=torch.long)
    question = torch.repeat_interleave(torch.arange(len(ranked)), sizes)
    scores = alignment_scores(graph, entities, question, questions, relations)
    parts = torch.split(scores, sizes.tolist())
    return [promote(c, s.tolist(), delta) for c, s in zip(ranked, parts, strict=True)]
