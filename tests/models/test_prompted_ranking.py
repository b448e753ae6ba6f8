"""What the ranking of prompted candidates shows the model, and what the candidates keep of their look-up."""

from __future__ import annotations

import json
from typing import Any

import pytest
from PIL import Image
from search_worlds import HashEncoder

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.scripted import ScriptedModel
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.prompted import PromptedGrounder
from vispath_lit.types import Analysis, Query

QUERY = Query("What is the capital of the country whose flag is shown?", Image.new("RGB", (8, 8), "blue"))
ANALYSIS = Analysis("the country whose flag is shown", "country", "capital", (1.0,))


@pytest.mark.parametrize(
    ("said", "order"),
    [({"ranking": [3, 1]}, [2, 0]), ({"ranking": []}, [0, 1, 2]), ("I cannot rank", [0, 1, 2])],
    ids=["ranked", "empty", "invalid"],
)
def test_each_candidate_keeps_the_score_of_its_name(
    toy_graph: KnowledgeGraph, said: Any, order: list[int]
) -> None:
    chat = ChatClient(ScriptedModel({"recognition": {"name": "Germany"}, "ranking": said}))
    (found,) = PromptedGrounder(toy_graph, chat, HashEncoder(), keep=3).ground([QUERY], [ANALYSIS])
    (near,) = NameIndex(toy_graph, HashEncoder()).search(["Germany"], 3)
    expected = [(near[k].entity, near[k].score, "image") for k in order]
    assert [(one.entity, one.score, one.origin) for one in found] == expected
    assert near[0].score == pytest.approx(1, abs=1e-3)
    assert near[0].score > near[2].score


def test_the_ranking_shows_names_o_and_q_alone(toy_graph: KnowledgeGraph) -> None:
    model = ScriptedModel({"recognition": {"name": "Germany"}, "ranking": {"ranking": [1]}})
    PromptedGrounder(toy_graph, ChatClient(model), HashEncoder(), retrieve=5).ground([QUERY], [ANALYSIS])
    shown = json.loads(str(model.requests[-1].messages[1].parts[-1]))
    assert set(shown) == {"question", "expression", "recognised", "candidates"}
    assert [set(one) for one in shown["candidates"]] == [{"number", "name"}] * 5
    assert [one["number"] for one in shown["candidates"]] == [1, 2, 3, 4, 5]
