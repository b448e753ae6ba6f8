"""Finds the topic and the answers of training questions in the graph where their file names only words."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from vispath_lit.data.queries import to_query
from vispath_lit.errors import DataError
from vispath_lit.kg.names import NameIndex
from vispath_lit.launch.parts import World
from vispath_lit.progress import tell, track
from vispath_lit.types import Query, Question

log = logging.getLogger(__name__)
BATCH = 64


def link(questions: Sequence[Question], world: World, parts: Mapping[str, Any]) -> list[Question]:
    """The same questions, with `answer_ids` by exact name and `topic_entity` by the grounder where missing.

    A question that stays without either is left to `supervise`, which counts it. Test questions never
    come here: a system finds their starts itself.
    """
    linked = list(questions)
    names = NameIndex(world.graph)
    for i, question in enumerate(linked):
        if not question.answer_ids and question.answers and not question.gold_paths:
            found = sorted({entity for answer in question.answers for entity in names.exact(answer)})
            ids = tuple(world.graph.entity_id(entity) for entity in found)
            linked[i] = replace(question, answer_ids=ids)
    lost = [i for i, question in enumerate(linked) if question.topic_entity is None]
    starts = range(0, len(lost), BATCH)
    for first in track(starts, "finding starts") if lost else ():
        batch = lost[first : first + BATCH]
        queries = [_asked(linked[i], world) for i in batch]
        analyses = parts["analyzer"].analyze(queries)
        for i, ranked in zip(batch, parts["grounder"].ground(queries, analyses), strict=True):
            if ranked:
                linked[i] = replace(linked[i], topic_entity=world.graph.entity_id(ranked[0].entity))
    if lost:
        found_now = sum(linked[i].topic_entity is not None for i in lost)
        tell(f"found the start of {found_now} of {len(lost)} questions without a topic_entity")
    return linked


def _asked(question: Question, world: World) -> Query:
    """As a system sees it; in its words alone where the picture cannot be read, as training itself does."""
    try:
        return to_query(question, world.graph)
    except DataError as error:
        log.warning("question %s is linked without its picture: %s", question.id, error)
        return Query(question.text)
