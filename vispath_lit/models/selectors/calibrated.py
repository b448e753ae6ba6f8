"""The best path's end, with a confidence that is fitted on validation questions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.selectors.best_path import BestPathSelector, share_of
from vispath_lit.types import Evidence, Path, Prediction, Provenance, Query

SMALLEST = 1e-4  # a probability nearer to 0 or 1 counts as this far from it
FEATURES = 8
LEAST = 50  # questions below which nothing is fitted
PENALTY = 1e-3  # on squared weights


class CalibratedSelector(nn.Module):
    """`BestPathSelector` with a logistic confidence (Platt scaling on several scores).

    Until `fit` it gives the fixed selector's confidence. Then it is the probability that the answer is right,
    from its share among the paths, its lead, the judge's answerability, and the start's score and lead.

    Args:
        temperature: of the softmax over the deciding paths; logits, unlike cosines, are of its size.
    """

    weight: Tensor
    bias: Tensor
    shift: Tensor
    scale: Tensor
    fitted: Tensor

    def __init__(self, graph: KnowledgeGraph, temperature: float = 1.0) -> None:
        super().__init__()
        self._base = BestPathSelector(graph, temperature)
        for name in ("weight", "shift", "scale"):
            self.register_buffer(name, torch.zeros(FEATURES))
        self.register_buffer("bias", torch.zeros(()))
        self.register_buffer("fitted", torch.zeros(()))

    def select(
        self,
        queries: Sequence[Query],
        evidence: Sequence[Evidence | None],
        visited: Sequence[Sequence[Path]],
    ) -> list[tuple[str, int | None, Provenance]]:
        return self._base.select(queries, evidence, visited)

    def confidence(self, prediction: Prediction) -> float:
        """The fitted probability that the answer is right; before, the share of the answer's paths."""
        if not self.fitted or prediction.answer_entity is None:
            return self._base.confidence(prediction)
        return float(torch.sigmoid(self._logits(self._features([prediction]))))

    def fit(self, predictions: Sequence[Prediction], right: Sequence[bool]) -> None:
        """Fits on predictions of questions that training never saw; too few, or all alike, change nothing."""
        known = [i for i, one in enumerate(predictions) if one.answer_entity is not None and one.paths]
        target = torch.tensor([float(right[i]) for i in known])
        if len(known) < LEAST or target.min() == target.max():
            return
        rows = self._features([predictions[i] for i in known])
        self.shift.copy_(rows.mean(0))
        self.scale.copy_(1 / rows.std(0).clamp(min=1e-3))
        weight, bias = (torch.zeros(n, dtype=torch.float64, requires_grad=True) for n in (FEATURES, 1))
        x = ((rows - self.shift) * self.scale).double()
        solver = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            solver.zero_grad()
            wrong = F.binary_cross_entropy_with_logits(x @ weight + bias, target.double())
            total = wrong + PENALTY * weight.square().sum()
            total.backward()  # type: ignore[no-untyped-call]
            return total

        with torch.enable_grad():
            solver.step(loss)  # type: ignore[no-untyped-call]
        self.weight.copy_(weight.detach())
        self.bias.copy_(bias.detach()[0])
        self.fitted.fill_(1.0)

    def _logits(self, rows: Tensor) -> Tensor:
        return (rows - self.shift) * self.scale @ self.weight + self.bias

    def _features(self, predictions: Sequence[Prediction]) -> Tensor:
        """`[n, FEATURES]`."""
        return torch.tensor([features(one, self._base.temperature) for one in predictions])


def features(prediction: Prediction, temperature: float) -> list[float]:
    """What tells a right answer from a wrong one, without looking at it."""
    answer, paths, starts = prediction.answer_entity, prediction.paths, prediction.candidates
    share = share_of(-1 if answer is None else answer, paths, temperature) if paths else 0.0
    scores = sorted((path.score for path in paths), reverse=True)
    seen = bool(starts) and starts[0].origin == "image"
    lead = starts[0].score - starts[1].score if len(starts) > 1 else 1.0
    return [
        _logit(share),
        min(scores[0] - scores[-1], 20.0) if scores else 0.0,
        _logit(prediction.answerability),
        float(seen),
        starts[0].score if seen else 0.0,
        math.log(max(lead, SMALLEST)) if seen else 0.0,
        float(len(paths[0].relations)) if paths else 0.0,
        float(prediction.provenance == "stopped"),
    ]


def _logit(probability: float) -> float:
    p = min(max(probability, SMALLEST), 1 - SMALLEST)
    return math.log(p / (1 - p))
