"""The one place where a question of the data becomes what a system may see of it."""

from __future__ import annotations

from vispath_lit.errors import DataError
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Query, Question


def to_query(
    question: Question, graph: KnowledgeGraph, *, grant_start: bool = False, grant_depth: bool = False
) -> Query:
    """What a system may see: the words, the pixels, and start and depth only where a protocol grants them.

    Args:
        grant_start: hand over the gold start entity ("given start").
        grant_depth: hand over the gold number of hops ("gold depth given").

    Raises:
        DataError: a granted value that the question does not hold, or an unreadable picture.
        UnknownEntityError: a topic that the graph does not hold.
    """
    topic = depth = None
    if grant_start:
        if question.topic_entity is None:
            raise DataError(f"question {question.id}: no topic_entity, which the given-start protocol needs")
        topic = graph.entity_index(question.topic_entity)
    if grant_depth:
        if question.hops is None:
            raise DataError(f"question {question.id}: no hops, which the given-depth protocol needs")
        depth = question.hops
    image = None if question.image is None else load_image(question.image)
    return Query(text=question.text, image=image, topic=topic, depth=depth)
