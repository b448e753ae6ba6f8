"""The final answer without a VLM: where the best path ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Evidence, Path, Prediction, Provenance, Query


def rank_endpoints(paths: Sequence[Path]) -> list[int]:
    """Distinct endpoints by best chain score, then by number of paths that end there, then by first seen."""
    best: dict[int, float] = {}
    count: dict[int, int] = {}
    for path in paths:
        best[path.end] = max(best.get(path.end, -math.inf), path.score)
        count[path.end] = count.get(path.end, 0) + 1
    return sorted(best, key=lambda entity: (-best[entity], -count[entity]))  # a stable sort


def share_of(entity: int, paths: Sequence[Path], temperature: float) -> float:
    """The part of `softmax(score / temperature)` over the paths that falls on those which end at `entity`."""
    top = max(path.score for path in paths)
    weights = [math.exp((path.score - top) / temperature) for path in paths]
    mine = sum(weight for weight, path in zip(weights, paths, strict=True) if path.end == entity)
    return mine / sum(weights)


class BestPathSelector:
    """The fixed `AnswerSelector`.

    With evidence: the judge's candidate answer, else the end of its best path. Without: the best endpoint of
    all paths ever kept ("terminal"). Nothing kept: an empty answer ("abstained"), as no fixed part can
    answer from the image alone.

    Args:
        temperature: of the softmax over the kept paths that gives the confidence; fitted on validation data.
    """

    def __init__(self, graph: KnowledgeGraph, temperature: float = 0.1) -> None:
        if not temperature > 0:
            raise ConfigError(f"selector.temperature is {temperature}; it must be above 0")
        self.graph = graph
        self.temperature = temperature

    def select(
        self,
        queries: Sequence[Query],
        evidence: Sequence[Evidence | None],
        visited: Sequence[Sequence[Path]],
    ) -> list[tuple[str, int | None, Provenance]]:
        return [self._one(found, paths) for found, paths in zip(evidence, visited, strict=True)]

    def confidence(self, prediction: Prediction) -> float:
        """The answer's share of a softmax over the deciding paths."""
        if prediction.answer_entity is None or not prediction.paths:
            return 0.0
        return share_of(prediction.answer_entity, prediction.paths, self.temperature)

    def _one(self, evidence: Evidence | None, visited: Sequence[Path]) -> tuple[str, int | None, Provenance]:
        paths = evidence.paths if evidence is not None and evidence.paths else visited
        if not paths:
            return "", None, "abstained"
        entity = rank_endpoints(paths)[0]
        if evidence is not None and evidence.answer_entity is not None:
            entity = evidence.answer_entity
        return self.graph.label(entity), entity, "terminal" if evidence is None else "stopped"
