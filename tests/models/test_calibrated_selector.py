"""The fitted confidence: calibrated on what it was fitted for, the share of the paths before."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.models.selectors.calibrated import LEAST, CalibratedSelector
from vispath_lit.types import Candidate, Path, Prediction


def predictions(count: int, seed: int) -> tuple[list[Prediction], list[bool]]:
    """The wider the lead of the best path, the likelier its answer; starts by image are harder."""
    rng = np.random.default_rng(seed)
    made, right = [], []
    for _ in range(count):
        lead, seen = rng.exponential(2.0), bool(rng.random() < 0.5)
        paths = (Path((0, 1), (0,), lead), Path((0, 2), (0,), 0.0))
        starts = (
            (Candidate(0, 0.9, "image"), Candidate(3, 0.8, "image"))
            if seen
            else (Candidate(0, 1.0, "topic"),)
        )
        made.append(Prediction("x", 1, "stopped", paths=paths, candidates=starts, answerability=0.9))
        right.append(bool(rng.random() < 1 / (1 + np.exp(1.0 + seen - lead))))
    return made, right


def test_the_fitted_confidence_is_calibrated_on_other_questions(toy_graph: KnowledgeGraph) -> None:
    selector = CalibratedSelector(toy_graph)
    before, right = predictions(2000, seed=0)
    fixed = BestPathSelector(toy_graph, temperature=1.0)
    assert [selector.confidence(one) for one in before[:20]] == [fixed.confidence(one) for one in before[:20]]
    selector.fit(before, right)
    unseen, truth = predictions(4000, seed=1)
    confidence = np.array([selector.confidence(one) for one in unseen])
    assert confidence.min() >= 0
    assert confidence.max() <= 1
    bins = np.digitize(confidence, np.linspace(0, 1, 11))
    hits = np.array(truth)
    gaps = [
        abs(hits[bins == b].mean() - confidence[bins == b].mean())
        for b in range(12)
        if (bins == b).sum() > 100
    ]
    assert max(gaps) < 0.07
    assert max(gaps) < abs(np.mean([fixed.confidence(one) for one in unseen]) - hits.mean())


def test_a_fit_is_saved_and_loaded_with_the_other_weights(toy_graph: KnowledgeGraph) -> None:
    selector, other = CalibratedSelector(toy_graph), CalibratedSelector(toy_graph)
    made, right = predictions(200, seed=2)
    selector.fit(made, right)
    other.load_state_dict(selector.state_dict())
    assert [other.confidence(one) for one in made] == [selector.confidence(one) for one in made]
    assert not list(selector.parameters())  # no optimiser moves them


@pytest.mark.parametrize("count", [0, LEAST - 1, 200])
def test_too_little_or_one_sided_evidence_changes_nothing(toy_graph: KnowledgeGraph, count: int) -> None:
    selector = CalibratedSelector(toy_graph)
    made, _ = predictions(count, seed=3)
    selector.fit(made, [True] * count)
    assert not bool(selector.fitted)
    nothing = Prediction("", None, "abstained")
    selector.fit([*made, nothing], [True] * count + [False])
    assert not bool(selector.fitted)
    assert selector.confidence(nothing) == 0
    assert torch.equal(selector.weight, torch.zeros_like(selector.weight))
