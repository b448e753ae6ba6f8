"""The two search agents and the zero-shot model: their turns, their tools, and how they end."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import pytest
from PIL import Image
from rival_worlds import ExactTexts, Script, TopicOnly, WordEncoder
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.systems.mindmap import MindMap
from vispath_lit.systems.mmsearch_r1 import MMSearchR1
from vispath_lit.systems.omnisearch import OmniSearch
from vispath_lit.systems.paths_over_graph import PathsOverGraph
from vispath_lit.systems.search_tools import SearchTools
from vispath_lit.systems.zero_shot import ZeroShot
from vispath_lit.types import Query

PICTURE = Image.new("RGB", (30, 20), "blue")
QUESTION = "What is the capital of the country shown?"


def tools(graph: KnowledgeGraph, **values: Any) -> SearchTools:
    seen = TopicOnly([graph.entity_index("fr"), graph.entity_index("de")])
    return SearchTools(graph, WordEncoder(), ExactTexts(graph), seen, **values)


def agent(kind: Any, graph: KnowledgeGraph, script: Script, **values: Any) -> Any:
    seen = TopicOnly([graph.entity_index("fr"), graph.entity_index("de")])
    return kind(graph, WordEncoder(), ExactTexts(graph), script.client, seen, **values)


def plan(action: str, words: str = "", sub_question: str = "") -> dict[str, Any]:
    return {"thought": "", "sub_question": sub_question, "action": action, "words": words}


def turn(image: bool = False, text: str = "", answer: str = "") -> dict[str, Any]:
    return {"reason": "", "image_search": image, "text_search": text, "answer": answer}


def in_turn(*replies: Any) -> Any:
    left = iter(replies)
    return lambda _: next(left)


# Tools


def test_a_picture_finds_pages_with_the_facts_that_are_asked_for(toy_graph: KnowledgeGraph) -> None:
    first, second = tools(toy_graph, facts=2).by_picture(PICTURE, "capital Paris")
    assert (first.title, first.kind, second.title) == ("France", "country", "Germany")
    assert first.text == "A country in western Europe."
    assert first.facts[0] == "France, capital, Paris"
    assert len(first.facts) == 2
    assert first.thumbnail is not None
    assert max(first.thumbnail.size) <= 224
    assert tools(toy_graph).by_picture(None, "x") == []
    assert len(tools(toy_graph, pages=1).by_picture(PICTURE, "x")) == 1


def test_words_find_names_first_then_what_is_near(toy_graph: KnowledgeGraph) -> None:
    pages = tools(toy_graph, pages=2).by_words("the Rhine river")
    assert pages[0].title == "Rhine"
    assert len(pages) == 2
    assert pages[0].thumbnail is None
    assert tools(toy_graph).by_words("  ") == []
    pictured = tools(toy_graph).pictures_of("France")
    assert pictured[0].title == "France"
    assert all(page.thumbnail is not None for page in pictured)
    assert {page.title for page in pictured} <= {"France", "Germany"}


def test_an_entity_without_edges_has_a_page_without_facts(toy_graph: KnowledgeGraph) -> None:
    assert tools(toy_graph).by_words("Atlantis")[0].facts == ()


# OmniSearch


def test_it_plans_searches_and_answers(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        omnisearch_plan=in_turn(
            plan("search_by_picture", sub_question="which country?"),
            plan("search_words", "France", "its capital?"),
            plan("search_pictures", "Germany"),
            plan("answer"),
        ),
        omnisearch_answer={"answer": "Paris"},
    )
    (found,) = agent(OmniSearch, toy_graph, script).answer([Query(QUESTION, PICTURE)])
    assert script.order == ["omnisearch_plan"] * 4 + ["omnisearch_answer"]
    assert (found.answer, found.provenance) == ("Paris", "terminal")
    assert found.answer_entity == toy_graph.entity_index("par")
    assert [toy_graph.entity_id(one.entity) for one in found.candidates] == ["fr", "de"]
    shown = script.of("omnisearch_plan")
    assert [data["rounds_left"] for data in shown] == [5, 4, 3, 2]
    assert shown[1]["found"][0]["sub_question"] == "which country?"
    assert shown[1]["found"][0]["pages"][0]["title"] == "France"
    assert [len(data["found"]) for data in shown] == [0, 1, 2, 3]
    assert all(request.images for request in script.requests)
    assert (found.cost.llm_calls, found.cost.vlm_calls) == (0, 5)


def test_rounds_end_and_are_each_questions_own(toy_graph: KnowledgeGraph) -> None:
    script = Script(omnisearch_plan=plan("search_words", "Paris"), omnisearch_answer={"answer": "x"})
    system = agent(OmniSearch, toy_graph, script, rounds=3, batch_size=1)
    for found in system.answer([Query("a", PICTURE), Query("b", PICTURE)]):
        assert found.cost.vlm_calls == 4, "the second question has as many rounds as the first"
    assert [data["rounds_left"] for data in script.of("omnisearch_plan")] == [3, 2, 1, 3, 2, 1]


def test_a_plan_that_cannot_be_read_asks_for_the_answer(toy_graph: KnowledgeGraph) -> None:
    script = Script(omnisearch_plan=plan("dance"), omnisearch_answer={"answer": "France"})
    (found,) = agent(OmniSearch, toy_graph, script).answer([Query(QUESTION)])
    assert (found.answer, found.provenance) == ("France", "image_only")
    assert script.order == ["omnisearch_plan", "omnisearch_answer"]
    assert script.count("omnisearch_plan.fallback") == 1
    (silent,) = agent(OmniSearch, toy_graph, Script()).answer([Query(QUESTION, PICTURE)])
    assert silent.provenance == "abstained"


def test_a_search_by_a_picture_that_is_not_there_finds_nothing(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        omnisearch_plan=in_turn(plan("search_by_picture"), plan("search_words"), plan("answer")),
        omnisearch_answer={"answer": "?"},
    )
    (found,) = agent(OmniSearch, toy_graph, script).answer([Query(QUESTION)])
    assert [data["pages"] for data in script.of("omnisearch_answer")[0]["found"]] == [[], []]
    assert (found.provenance, found.candidates) == ("image_only", ())


# MMSearch-R1


def test_it_reasons_searches_once_by_picture_and_by_words(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        mmsearch_turn=in_turn(turn(image=True), turn(text="France"), turn(answer="Paris")),
        mmsearch_summary={"text": "Paris is its capital."},
    )
    (found,) = agent(MMSearchR1, toy_graph, script).answer([Query(QUESTION, PICTURE)])
    assert script.order == ["mmsearch_turn", "mmsearch_turn", "mmsearch_summary", "mmsearch_turn"]
    assert (found.answer, found.provenance, found.statement) == ("Paris", "stopped", "Paris is its capital.")
    last = script.of("mmsearch_turn")[-1]
    assert last["searched"][0]["image_search"] == [
        {"page": 1, "title": "France"},
        {"page": 2, "title": "Germany"},
    ]
    assert last["searched"][1] == {"text_search": "France", "summary": "Paris is its capital."}
    assert last["turns_left"] == 1
    assert [len(request.images) for request in script.requests] == [1, 3, 0, 3], "thumbnails lie beside"
    assert script.of("mmsearch_summary")[0]["query"] == "France"
    assert [toy_graph.entity_id(one.entity) for one in found.candidates] == ["fr", "de"]
    assert (found.cost.vlm_calls, found.cost.llm_calls) == (3, 1)


@pytest.mark.parametrize(
    "last",
    [
        turn(),
        turn(image=True),
        turn(text="a", answer="b"),
        turn(image=True, text="a"),
        "no json",
        turn(answer="  "),
    ],
    ids=["none", "a second image search", "two", "two with the image", "unreadable", "blank"],
)
def test_malformed_tags_end_the_conversation(toy_graph: KnowledgeGraph, last: Any) -> None:
    script = Script(mmsearch_turn=in_turn(turn(image=True), last, last))
    (found,) = agent(MMSearchR1, toy_graph, script).answer([Query(QUESTION, PICTURE)])
    assert (found.answer, found.provenance) == ("", "abstained")
    assert len(script.of("mmsearch_turn")) == 2


def test_the_last_turn_must_answer(toy_graph: KnowledgeGraph) -> None:
    script = Script(mmsearch_turn=turn(text="Paris"))
    (found,) = agent(MMSearchR1, toy_graph, script).answer([Query(QUESTION, PICTURE)])
    assert found.provenance == "abstained"
    assert script.order.count("mmsearch_turn") == 3
    assert script.count("mmsearch_summary.fallback") == 3
    assert "Paris" in str(script.of("mmsearch_turn")[1]["searched"][0]["summary"]), "the facts as they are"


def strict(encoder: WordEncoder) -> WordEncoder:
    """Refuses what no tokenizer takes."""
    encode = encoder.encode

    def checked(texts: Sequence[str]) -> Tensor:
        assert all(text.encode("utf8") is not None and len(text) <= 2_100 for text in texts)
        return encode(texts)

    encoder.encode = checked  # type: ignore[method-assign]
    return encoder


@pytest.mark.parametrize("kind", [MindMap, PathsOverGraph, OmniSearch, MMSearchR1])
def test_broken_words_of_a_model_reach_no_tokenizer(toy_graph: KnowledgeGraph, kind: Any) -> None:
    bad = "\\ud800 France" + " x" * 5000  # as an answer's JSON writes it
    script = Script(
        mindmap_entities=f"{{'names': ['{bad}']}}",
        pog_plan=f"{{'chain': ['{bad}'], 'sub_questions': ['{bad}']}}",
        pog_predict=f"{{'names': ['{bad}']}}",
        omnisearch_plan=f"{{'thought': '', 'sub_question': '', 'action': 'search_words', 'words': '{bad}'}}",
        mmsearch_turn=f"{{'reason': '', 'image_search': false, 'text_search': '{bad}', 'answer': ''}}",
    )
    starts = TopicOnly()
    parts = {
        "graph": toy_graph,
        "text_encoder": strict(WordEncoder()),
        "texts": ExactTexts(toy_graph),
        "chat": script.client,
        "analyzer": starts,
        "grounder": starts,
    }
    wanted = inspect.signature(kind).parameters
    system = kind(**{name: part for name, part in parts.items() if name in wanted})
    (found,) = system.answer([Query(QUESTION, PICTURE, toy_graph.entity_index("par"))])
    assert found.provenance == "abstained"
    assert script.count("pog_plan.answered") + script.count("mindmap_entities.answered") == (
        kind in (MindMap, PathsOverGraph)
    )


# Zero-shot


def test_zero_shot_sees_picture_and_question_alone(toy_graph: KnowledgeGraph) -> None:
    script = Script(zero_shot_answer={"answer": " City of Light. "})
    system = ZeroShot(toy_graph, script.client)
    topic = toy_graph.entity_index("fr")
    with_picture, without = system.answer([Query(QUESTION, PICTURE, topic), Query(QUESTION)])
    assert (with_picture.answer, with_picture.provenance) == ("City of Light.", "image_only")
    assert with_picture.answer_entity == toy_graph.entity_index("par"), "an alias, a full stop aside"
    assert script.of("zero_shot_answer") == [{"question": QUESTION}] * 2
    assert (with_picture.cost.vlm_calls, without.cost.vlm_calls, without.cost.llm_calls) == (1, 0, 1)
    assert with_picture.candidates == ()
    (silent,) = ZeroShot(toy_graph, Script().client).answer([Query(QUESTION)])
    assert silent.provenance == "abstained"


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [(OmniSearch, "rounds"), (MMSearchR1, "turns"), (OmniSearch, "pages"), (MMSearchR1, "facts")],
)
def test_values_that_cannot_work_are_refused(toy_graph: KnowledgeGraph, kind: Any, wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"system.{wrong} is 0"):
        agent(kind, toy_graph, Script(), **{wrong: 0})
