"""Training questions whose file names only words find their entities in the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch import link as linking
from vispath_lit.launch.link import link
from vispath_lit.launch.parts import World
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.grounders.name import NameGrounder
from vispath_lit.protocols import ImageEncoder, TextEncoder
from vispath_lit.types import Query, Question


class Listening(PatternAnalyzer):
    """Keeps the queries that it was asked about, batch by batch."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[list[Query]] = []

    def analyze(self, queries: Sequence[Query]) -> Any:
        self.heard.append(list(queries))
        return super().analyze(queries)


@pytest.fixture
def world(toy_graph: KnowledgeGraph, tmp_path: Path) -> World:
    text, image = cast(TextEncoder, None), cast(ImageEncoder, None)  # linking embeds nothing by itself
    return World(None, toy_graph, text, image, tmp_path)


@pytest.fixture
def parts(toy_graph: KnowledgeGraph) -> dict[str, Any]:
    return {"analyzer": Listening(), "grounder": NameGrounder(toy_graph)}


def test_answers_become_every_entity_of_that_name(world: World, parts: dict[str, Any]) -> None:
    question = Question("q", "?", answers=("paris", "Deutschland", "nobody"), topic_entity="fr")
    (linked,) = link([question], world, parts)
    assert sorted(linked.answer_ids) == ["de", "par", "pt"]
    assert linked.answers == question.answers
    assert parts["analyzer"].heard == []


def test_what_is_given_is_not_looked_up(world: World, parts: dict[str, Any]) -> None:
    with_ids = Question("a", "?", answers=("Paris",), answer_ids=("pt",), topic_entity="fr")
    with_gold = Question("b", "?", answers=("Paris",), topic_entity="fr", gold_paths=((("capital", "par"),),))
    assert link([with_ids, with_gold], world, parts) == [with_ids, with_gold]


def test_a_picture_that_cannot_be_read_ends_nothing(
    world: World, parts: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = Question("q", "What is the capital of France?", image=tmp_path / "missing.png")
    fine = Question("r", "What is the capital of Germany?")
    assert [one.topic_entity for one in link([broken, fine], world, parts)] == ["fr", "de"]
    assert "missing.png" in caplog.text


def test_starts_come_from_the_grounder_in_batches(
    world: World, parts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "BATCH", 2)
    texts = ("What borders France?", "What borders Germany?", "Where is it?", "Where does the Rhine flow?")
    questions = [Question(f"q{i}", text) for i, text in enumerate(texts)]
    given = Question("given", "What borders Monaco?", topic_entity="ch")
    linked = link([given, *questions], world, parts)
    assert [question.topic_entity for question in linked] == ["ch", "fr", "de", None, "rhi"]
    assert [question.id for question in linked] == ["given", "q0", "q1", "q2", "q3"]
    assert [[query.text for query in batch] for batch in parts["analyzer"].heard] == [
        list(texts[:2]),
        list(texts[2:]),
    ]
    assert all(query.topic is None for batch in parts["analyzer"].heard for query in batch)
