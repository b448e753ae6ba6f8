"""A question's gold in the graph's own terms."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from vispath_lit.errors import UnknownEntityError
from vispath_lit.evaluation.pruning import GoldWalk
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question


@dataclass(frozen=True, slots=True)
class Truth:
    """What a question accepts; what the graph does not hold is (`missing`, id) or -1.

    Attributes:
        texts: the accepted strings, else the labels of the answer ids.
        accepted: these, and every label and alias of the answer ids.
        entities: the answer ids as entities; empty where the question names none.
        start: the topic entity, None where the question names none.
        walks: the gold paths from `start`.
    """

    texts: tuple[str, ...]
    accepted: frozenset[str]
    entities: frozenset[Hashable]
    start: int | None
    walks: tuple[GoldWalk, ...]


def truth_of(question: Question, graph: KnowledgeGraph) -> Truth:
    """Looks up all that a question's gold names; nothing that is missing is an error."""
    found = graph.entity_indices(question.answer_ids).tolist()
    known = [entity for entity in found if entity >= 0]
    labels = graph.labels(known)
    aliases = [alias for entity in known for alias in graph.aliases(entity)]
    start = None
    if question.topic_entity is not None:
        start = int(graph.entity_indices([question.topic_entity])[0])
    return Truth(
        texts=question.answers or tuple(labels),
        accepted=frozenset([*question.answers, *labels, *aliases]),
        entities=frozenset(
            entity if entity >= 0 else ("missing", id)
            for entity, id in zip(found, question.answer_ids, strict=True)
        ),
        start=start,
        walks=() if start is None else tuple(_gold_walk(start, path, graph) for path in question.gold_paths),
    )


def _gold_walk(start: int, path: Sequence[tuple[str, str]], graph: KnowledgeGraph) -> GoldWalk:
    entities = graph.entity_indices([entity for _, entity in path]).tolist()
    return (start, *entities), tuple(_relation(graph, relation) for relation, _ in path)


def _relation(graph: KnowledgeGraph, id: str) -> int:
    try:
        return graph.relation_index(id)
    except UnknownEntityError:  # Gold that the graph cannot walk: a miss, never an error.
        return -1
