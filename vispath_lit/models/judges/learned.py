"""Eq. 10 learned: the depth analysis, corrected by what the best path leaves of the question."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import IntentModel
from vispath_lit.types import Analysis, Evidence, Path, Paths, Query

SMALLEST = 1e-6  # probability below which a depth counts as this


class LearnedJudge(nn.Module):
    """The learned `EvidenceJudge`; with depth alone until it is trained.

    eta = sigmoid(log p(i) - max over d != i of log p(d) + s(Q, best path)), where p is the analysis'
    distribution of depth and s a head on the intent's h, zero at the start: untrained it is answerable where
    `DepthJudge` stops. In training s is fitted without p, which knows the depth of every training question.

    Args:
        intent: gives h; must be a `LearnedIntent`.
        width: of the head.
        dropout: inside the head.
    """

    def __init__(
        self, graph: KnowledgeGraph, intent: IntentModel, width: int = 64, dropout: float = 0.2
    ) -> None:
        super().__init__()
        if not isinstance(intent, LearnedIntent):
            raise ConfigError(
                f"judge LearnedJudge reads a learned intent, found {type(intent).__name__}: "
                "use parts/intent=learned, or parts/judge=fixed"
            )
        self._frozen = (DepthJudge(graph), intent)
        self.read = nn.Sequential(nn.Linear(intent.width, width), nn.GELU(), nn.Dropout(dropout))
        self.out = Correction(width, 1)

    def judge(
        self,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        kept: Sequence[Sequence[Path]],
        hop: int,
    ) -> list[Evidence]:
        """The evidence of `DepthJudge` with a learned answerability."""
        base = self._frozen[0].judge(queries, analyses, kept, hop)
        alive = [i for i, paths in enumerate(kept) if paths]
        if not alive:
            return base
        with torch.no_grad():
            reading = self._frozen[1].recall([queries[i] for i in alive])
            hidden = self._frozen[1].hidden(best_paths([kept[i] for i in alive]), reading)
            logits = self.stop_logits(hidden).cpu()
        prior = torch.tensor([depth_margin(analyses[i].depth, hop) for i in alive])
        for i, eta in zip(alive, torch.sigmoid(prior + logits).tolist(), strict=True):
            base[i] = replace(base[i], answerability=eta)
        return base

    def stop_logits(self, hidden: Tensor) -> Tensor:
        """Logits s `[P]` of h `[P, width]`: above zero where nothing of the question is left to be walked."""
        return cast(Tensor, self.out(self.read(hidden)))[:, 0]


def best_paths(kept: Sequence[Sequence[Path]]) -> Paths:
    """The first path of each question as flat tensors."""
    return Paths.of([paths[0] for paths in kept], torch.arange(len(kept)))


def depth_margin(depth: Sequence[float], hop: int) -> float:
    """The log of p(hop) minus that of the likeliest other depth: above zero where `hop` is D^."""
    here = max(depth[hop - 1] if hop <= len(depth) else 0.0, SMALLEST)
    other = max([SMALLEST, *(p for place, p in enumerate(depth, 1) if place != hop)])
    return math.log(here / other)
