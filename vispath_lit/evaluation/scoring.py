"""From questions and predictions to records: the only code that holds both the answer and what was answered.

Scores (a metric is left out of a record only where the *question* has no gold for it):
    answers or answer ids:  sbert@0.3, exact_match, hits@1, f1, answer_recall@3
    topic entity:           grounding_strict, grounding_soft, grounding_recall@5
    topic and gold paths:   path_hit@3, path_precision, path_recall, path_f1
    a rule of its own:      vqa_accuracy (`vispath_lit.evaluation.own`)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from vispath_lit.errors import VisPathError
from vispath_lit.evaluation import metrics
from vispath_lit.evaluation.describe import describe
from vispath_lit.evaluation.own import own_accuracy
from vispath_lit.evaluation.records import Record
from vispath_lit.evaluation.truth import Truth, truth_of
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Prediction, Provenance, Question

ANSWER_METRICS = ("sbert@0.3", "exact_match", "hits@1", "f1", "answer_recall@3")
PATH_METRICS = ("path_hit@3", "path_precision", "path_recall", "path_f1")
GROUNDING_METRICS = ("grounding_strict", "grounding_soft", "grounding_recall@5")
OWN_METRICS = ("vqa_accuracy",)
_ROUNDING = 1e-6


class PredictionError(VisPathError):
    """A system gave something that is no prediction for its question."""


def score(
    questions: Sequence[Question],
    predictions: Sequence[Prediction],
    keys: Sequence[str],
    graph: KnowledgeGraph,
    encoder: TextEncoder,
) -> list[Record]:
    """One record a question, in order; all texts of the batch are embedded in one call.

    Raises:
        PredictionError: a prediction that breaks the contract of `Prediction`.
        MetricError: a score that is NaN.
    """
    for question, prediction in zip(questions, predictions, strict=True):
        check(prediction, question, graph)
    truths = [truth_of(question, graph) for question in questions]
    near = metrics.best_cosines([p.answer for p in predictions], [t.texts for t in truths], encoder)
    starts = [_start_labels(p, t, graph) for p, t in zip(predictions, truths, strict=True)]
    same = metrics.best_cosines([s[0] for s in starts], [s[1:] for s in starts], encoder)
    rows = zip(questions, predictions, keys, truths, near.tolist(), same.tolist(), strict=True)
    return [
        describe(
            question,
            prediction,
            key,
            truth,
            _scores(prediction, truth, cosine, start, graph) | _own(question, prediction, truth, graph),
            graph,
        )
        for question, prediction, key, truth, cosine, start in rows
    ]


def check(prediction: Prediction, question: Question, graph: KnowledgeGraph) -> None:
    """Refuses what no table may hold.

    Raises:
        PredictionError: confidence outside [0, 1], an entity that the graph does not have, an unknown
            provenance, an empty answer that is neither `abstained` nor `failed`, or the reverse.
    """
    found = f"question {question.id}: the system gave"
    if prediction.provenance not in get_args(Provenance):
        raise PredictionError(
            f"{found} provenance {prediction.provenance!r}: expected {get_args(Provenance)}."
        )
    if not -_ROUNDING <= prediction.confidence <= 1 + _ROUNDING:
        raise PredictionError(f"{found} confidence {prediction.confidence}: expected a number in [0, 1].")
    silent = prediction.provenance in ("abstained", "failed")
    if silent == bool(prediction.answer.strip()):
        expected = "no answer" if silent else "an answer"
        raise PredictionError(
            f"{found} {prediction.answer!r} as {prediction.provenance}: expected {expected} with it."
        )
    named = [prediction.answer_entity] if prediction.answer_entity is not None else []
    walked = [entity for path in prediction.paths for entity in path.entities]
    entities = [*named, *walked, *prediction.ranked, *prediction.answer_set]
    entities += [candidate.entity for candidate in prediction.candidates]
    if entities and not 0 <= min(entities) <= max(entities) < graph.num_entities:
        raise PredictionError(
            f"{found} entities {min(entities)} to {max(entities)}: expected 0 to {graph.num_entities - 1}."
        )


def _start_labels(prediction: Prediction, truth: Truth, graph: KnowledgeGraph) -> list[str]:
    """Labels of the predicted and the gold start; empty or absent where there is none."""
    predicted = graph.label(prediction.candidates[0].entity) if prediction.candidates else ""
    known = truth.start is not None and truth.start >= 0
    return [predicted, graph.label(truth.start)] if known and truth.start is not None else [predicted]


def _scores(
    prediction: Prediction, truth: Truth, cosine: float, start: float, graph: KnowledgeGraph
) -> dict[str, float]:
    scores: dict[str, float] = {}
    if truth.texts or truth.entities:
        scores["sbert@0.3"] = float(cosine >= metrics.SBERT_THRESHOLD)
        scores["exact_match"] = float(metrics.exact_match(prediction.answer, truth.accepted))
        scores |= _answer_scores(prediction, truth, graph)
    if truth.start is not None:
        strict = [candidate.entity == truth.start for candidate in prediction.candidates]
        scores["grounding_strict"] = float(any(strict[:1]))
        scores["grounding_soft"] = float(any(strict[:1]) or start >= metrics.SOFT_THRESHOLD)
        scores["grounding_recall@5"] = float(any(strict[:5]))
    if truth.walks:
        gold = [_steps(*walk) for walk in truth.walks]
        paths = [_steps(path.entities, path.relations) for path in prediction.paths]
        overlap = metrics.path_overlap(paths[0] if paths else (), gold)
        scores["path_hit@3"] = float(metrics.path_hit(paths, gold, 3))
        scores |= {f"path_{name}": value for name, value in overlap._asdict().items()}
    return scores


def _own(question: Question, prediction: Prediction, truth: Truth, graph: KnowledgeGraph) -> dict[str, float]:
    if "scoring" not in question.meta:
        return {}
    ends = dict.fromkeys(prediction.answer_set)
    names = [(graph.label(entity), *graph.aliases(entity)) for entity in ends]
    exact = metrics.exact_match(prediction.answer, truth.accepted)
    value = own_accuracy(question, prediction.answer, names, exact)
    return {} if value is None else {OWN_METRICS[0]: value}


def _answer_scores(prediction: Prediction, truth: Truth, graph: KnowledgeGraph) -> dict[str, float]:
    """Hits@1, set F1 and recall: by id where the question has ids.

    Without ids the accepted strings are alternatives for one answer: an entity is right if one of its
    names is accepted, recall is 1 as soon as one is.
    """
    if truth.entities:
        return {
            "hits@1": float(prediction.answer_entity in truth.entities),
            "f1": metrics.set_overlap(prediction.answer_set, truth.entities).f1,
            "answer_recall@3": metrics.recall_at(prediction.ranked, truth.entities, 3),
        }
    accepted = {metrics.normalize(text) for text in truth.accepted}

    def named(entity: int) -> bool:
        names = (graph.label(entity), *graph.aliases(entity))
        return any(metrics.normalize(name) in accepted for name in names)

    entity = prediction.answer_entity
    hit = metrics.exact_match(prediction.answer, truth.accepted) or (entity is not None and named(entity))
    found = [named(entity) for entity in dict.fromkeys(prediction.answer_set)]
    precision, recall = (sum(found) / len(found), float(any(found))) if found else (0.0, 0.0)
    return {
        "hits@1": float(hit),
        "f1": 2 * precision * recall / (precision + recall) if recall else 0.0,
        "answer_recall@3": float(any(named(entity) for entity in prediction.ranked[:3])),
    }


def _steps(entities: Sequence[int], relations: Sequence[int]) -> tuple[metrics.Step, ...]:
    return tuple(zip(entities[:-1], relations, entities[1:], strict=True))
