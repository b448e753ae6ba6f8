"""The paper's system does not abstain: what it answers where pictures and evidence tell nothing."""

from __future__ import annotations

from typing import Any

import pytest
from PIL import Image

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.scripted import ScriptedModel
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.selectors.prompted import PromptedSelector
from vispath_lit.types import Evidence, Path, Prediction, Query

PICTURE = Image.new("RGB", (8, 8), "blue")


def walk(graph: KnowledgeGraph, start: str, relation: str, end: str, score: float) -> Path:
    entities = graph.entity_index(start), graph.entity_index(end)
    return Path(entities, (graph.relation_index(relation),), score)


@pytest.fixture
def visited(toy_graph: KnowledgeGraph) -> list[Path]:
    """Paris is likelier than Germany, though it was found later; Germany alone has a reference picture."""
    return [walk(toy_graph, "fr", "borders", "de", 0.5), walk(toy_graph, "fr", "capital", "par", 0.9)]


IMPLAUSIBLE = {"verification": {"choice": 0}}


@pytest.mark.parametrize("said", ["I cannot tell", {"answer": " "}], ids=["invalid twice", "empty"])
def test_an_image_answer_of_no_use_leaves_the_likeliest_end(
    toy_graph: KnowledgeGraph, visited: list[Path], said: Any
) -> None:
    chat = ChatClient(ScriptedModel(IMPLAUSIBLE | {"image_answer": said}))
    selector = PromptedSelector(toy_graph, chat)
    (found,) = selector.select([Query("?", PICTURE)], [None], [visited])
    assert found == ("Paris", toy_graph.entity_index("par"), "terminal")
    assert chat.usage()["image_answer.calls"] >= 1, "the picture is asked first"
    prediction = Prediction(*found, paths=tuple(visited))
    assert 0 < selector.confidence(prediction) < 1


def test_without_a_picture_the_likeliest_end_stands_though_none_was_plausible(
    toy_graph: KnowledgeGraph, visited: list[Path]
) -> None:
    chat = ChatClient(ScriptedModel(IMPLAUSIBLE))
    (found,) = PromptedSelector(toy_graph, chat).select([Query("?")], [None], [visited])
    assert found == ("Paris", toy_graph.entity_index("par"), "terminal")


def test_evidence_that_tells_nothing_leaves_paths_and_then_the_picture(
    toy_graph: KnowledgeGraph, visited: list[Path]
) -> None:
    empty = Evidence("", 1.0, None, None, (), 1)
    told = {"final_answer": {"answer": ""}, "verification": {"choice": 2}, "image_answer": {"answer": "Lyon"}}
    chat = ChatClient(ScriptedModel(told))
    found = PromptedSelector(toy_graph, chat).select(
        [Query("?", PICTURE), Query("?", PICTURE)], [empty, empty], [visited, []]
    )
    assert found[0] == ("Germany", toy_graph.entity_index("de"), "terminal")
    assert (found[1][0], found[1][2]) == ("Lyon", "image_only")


def test_it_abstains_where_there_is_nothing_at_all(toy_graph: KnowledgeGraph) -> None:
    chat = ChatClient(ScriptedModel({"final_answer": {"answer": ""}, "image_answer": "I cannot tell"}))
    found = PromptedSelector(toy_graph, chat).select(
        [Query("?", PICTURE), Query("?")], [None, Evidence("", 1.0, None, None, (), 1)], [[], []]
    )
    assert found == [("", None, "abstained")] * 2
