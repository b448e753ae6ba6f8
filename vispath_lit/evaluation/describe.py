"""A question and its prediction in ids, labels and scores: how a `Record` is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from vispath_lit.evaluation import metrics
from vispath_lit.evaluation.pruning import GoldWalk, lost_at
from vispath_lit.evaluation.records import Gold, Hop, Record, Start, Walk
from vispath_lit.evaluation.truth import Truth
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import HopTrace, Path, Prediction, Question

PRUNED_SHOWN = 3
KIND_TAG = "image:"


def describe(
    question: Question,
    prediction: Prediction,
    key: str,
    truth: Truth,
    scores: Mapping[str, float],
    graph: KnowledgeGraph,
) -> Record:
    """The record of one question, readable without the graph.

    Raises:
        MetricError: a score of a path or candidate that is no number.
    """
    paths = [_walk(path, graph) for path in prediction.paths]
    answer = prediction.answer_entity
    return Record(
        id=question.id,
        key=key,
        question=question.text,
        answer=prediction.answer,
        answer_id=None if answer is None else graph.entity_id(answer),
        provenance=prediction.provenance,
        confidence=min(1.0, max(0.0, metrics.finite(prediction.confidence, "confidence"))),
        depth=prediction.depth,
        statement=prediction.statement,
        path=paths[0] if paths else None,
        others=tuple(paths[1:]),
        candidates=tuple(
            Start(graph.entity_id(c.entity), graph.label(c.entity), _finite(c.score), c.origin)
            for c in prediction.candidates
        ),
        ranked=tuple(graph.labels(prediction.ranked)),
        answer_set=len(set(prediction.answer_set)),
        trace=tuple(_hop(trace, graph) for trace in prediction.trace),
        gold=_gold(question, truth, graph),
        scores=scores,
        lost=lost_at(prediction, truth.walks) if truth.walks else None,
        cost=prediction.cost,
    )


def _gold(question: Question, truth: Truth, graph: KnowledgeGraph) -> Gold:
    known = truth.start is not None and truth.start >= 0
    pair = question.meta.get("pair")
    return Gold(
        answers=truth.texts,
        answer_ids=question.answer_ids,
        start=question.topic_entity,
        start_label=graph.label(truth.start) if known and truth.start is not None else "",
        paths=tuple(
            _gold_labels(question, path, walk, graph)
            for path, walk in zip(question.gold_paths, truth.walks, strict=False)
        ),
        hops=question.hops or max((len(path) for path in question.gold_paths), default=0) or None,
        tags=question.tags,
        in_graph=any(isinstance(e, int) for e in truth.entities) if truth.entities else None,
        kind=_image_kind(question, truth, graph),
        pair=pair if isinstance(pair, str) else None,
    )


def _image_kind(question: Question, truth: Truth, graph: KnowledgeGraph) -> str | None:
    """What the question's tag `image:...` says, else what all pictures of its start in the graph are."""
    if question.image is None:
        return None
    tagged = [tag.removeprefix(KIND_TAG) for tag in question.tags if tag.startswith(KIND_TAG)]
    if tagged or truth.start is None or truth.start < 0:
        return tagged[0] if tagged else None
    kinds = {kind for _, kind in graph.images_of(truth.start)}
    return kinds.pop() if len(kinds) == 1 else None


def _gold_labels(
    question: Question, path: Sequence[tuple[str, str]], walk: GoldWalk, graph: KnowledgeGraph
) -> Walk:
    """A gold path with its labels; an id stands for itself where the graph does not hold it."""
    entities = (question.topic_entity or "", *(entity for _, entity in path))
    relations = tuple(relation for relation, _ in path)
    return Walk(
        entities,
        relations,
        tuple(graph.label(i) if i >= 0 else id for i, id in zip(walk[0], entities, strict=True)),
        tuple(graph.relation_label(i) if i >= 0 else id for i, id in zip(walk[1], relations, strict=True)),
    )


def _walk(path: Path, graph: KnowledgeGraph) -> Walk:
    return Walk(
        tuple(graph.entity_ids(path.entities)),
        tuple(graph.relation_id(relation) for relation in path.relations),
        tuple(graph.labels(path.entities)),
        tuple(graph.relation_label(relation) for relation in path.relations),
        _finite(path.score),
    )


def _hop(trace: HopTrace, graph: KnowledgeGraph) -> Hop:
    kept = {(path.entities, path.relations) for path in trace.kept}
    pruned = [path for path in trace.chains if (path.entities, path.relations) not in kept]
    return Hop(
        intent=trace.intent,
        edges=trace.edges,
        discovered=len(trace.discovered),
        chains=len(trace.chains),
        kept=tuple(_walk(path, graph) for path in trace.kept),
        pruned=tuple(_walk(path, graph) for path in pruned[:PRUNED_SHOWN]),
        answerability=metrics.finite(trace.answerability, "answerability"),
    )


def _finite(score: float) -> float:
    if math.isnan(score):
        raise metrics.MetricError(
            "a path or candidate has the score NaN: expected a number. Check its scorer."
        )
    return metrics.finite(score, "a path or candidate score")
