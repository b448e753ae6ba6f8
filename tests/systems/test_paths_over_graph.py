"""Paths-over-Graph step by step (the numbers are those of its docstring)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rival_worlds import ExactTexts, Script, TopicOnly, WordEncoder, free_of_time

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.systems.name_likeness import tf_idf
from vispath_lit.systems.paths_over_graph import PathsOverGraph, in_order
from vispath_lit.systems.walking import distinct
from vispath_lit.types import Path, Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
NO = {"sufficient": False, "answer": ""}
PLAN = {"chain": ["Paris", "its country", "its currency"], "sub_questions": ["what is paid with there?"]}


def rival(graph: KnowledgeGraph, script: Script, **values: Any) -> PathsOverGraph:
    return PathsOverGraph(
        graph, WordEncoder(), ExactTexts(graph), script.client, TopicOnly(), TopicOnly(), **values
    )


def take(*ends: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Chooses the listed paths that end so, in this order."""

    def answer(data: dict[str, Any]) -> dict[str, Any]:
        return {"numbers": [p["number"] for end in ends for p in data["paths"] if p["text"].endswith(end)]}

    return answer


def test_it_stops_at_the_first_number_of_hops_that_suffices(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        pog_plan=PLAN,
        pog_best=take("currency -> euro", "-> France"),
        pog_summary={"text": "It pays in euro."},
        pog_judge=lambda data: {"sufficient": "euro" in str(data["paths"]), "answer": "euro"},
    )
    query = Query("What is paid with there?", topic=toy_graph.entity_index("par"))
    (found,) = rival(toy_graph, script).answer([query])
    assert (found.answer, found.provenance) == ("euro", "stopped")
    assert [toy_graph.entity_id(e) for e in found.paths[0].entities] == ["par", "fr", "eur"]
    # 1; L is 2, so 1 hop first (5), few enough for one cut; then 2
    assert script.order[:3] == ["pog_plan", "pog_best", "pog_summary"]
    assert script.of("pog_judge")[-1]["summary"] == "It pays in euro."  # 7
    assert script.of("pog_judge")[0]["sub_questions"] == PLAN["sub_questions"]
    assert script.of("pog_plan")[0]["topics"] == ["Paris"]
    assert len(found.paths) <= 3


def test_the_chain_says_how_far_it_begins(toy_graph: KnowledgeGraph) -> None:
    chain = ["Paris", "a", "b", "c", "d"]  # L is 4: from 2 hops on
    script = Script(pog_plan={"chain": chain, "sub_questions": []}, pog_judge=NO)
    system = rival(toy_graph, script, keep=80, branches=80)
    system.answer([Query("?", topic=toy_graph.entity_index("par"))])
    walked = [max(path.count("->") // 2 for path in data["paths"]) for data in script.of("pog_judge")]
    assert walked[:2] == [2, 3]


def test_three_cuts(make_graph: MakeGraph) -> None:
    graph = make_graph(101, 1, [(0, 0, i) for i in range(1, 101)])
    script = Script(
        pog_branches=lambda data: {"numbers": [p["number"] for p in data["paths"]][::-1]},
        pog_best={"numbers": [7, 7, 3, 99, -1, 5, 6]},
        pog_judge=NO,
    )
    rival(graph, script, d_max=1, hub_cap=100).answer([Query("?", topic=0)])
    first, second = script.of("pog_branches")[0], script.of("pog_best")[0]
    assert (len(first["paths"]), first["most"]) == (80, 20)  # 6
    assert (len(second["paths"]), second["most"]) == (20, 3)
    asked = {request.step: request.most for request in script.requests}
    assert (asked["pog_branches"], asked["pog_best"]) == (20, 3)
    assert [p["text"] for p in second["paths"]] == [p["text"] for p in first["paths"]][::-1][:20]
    assert script.of("pog_judge")[0]["paths"] == [second["paths"][i - 1]["text"] for i in (7, 3, 5)]
    assert script.count("pog_plan.fallback") == 1
    capped = Script(pog_judge=NO)
    rival(graph, capped, d_max=1, hub_cap=10).answer([Query("?", topic=0)])
    assert "pog_branches" not in capped.order, "ten edges need no first cut"
    assert capped.count("pog_best.fallback") >= 1


def test_several_topics_are_joined_in_the_order_of_the_chain(toy_graph: KnowledgeGraph) -> None:
    plan = {"chain": ["Berlin", "its country", "Paris"], "sub_questions": ["a", "b"]}
    script = Script(pog_plan=plan, pog_judge=NO, pog_answer={"answer": "France"})
    query = Query("What lies between it and Berlin?", topic=toy_graph.entity_index("par"))
    (found,) = rival(toy_graph, script, keep=80, branches=80).answer([query])
    assert script.of("pog_plan")[0]["topics"] == ["Paris", "Berlin"]
    for path in script.of("pog_judge")[-1]["paths"][:1]:
        assert path.startswith("Berlin -> ")
        assert "Paris" in path
    assert in_order([1, 2, 3], ["A", "B", "C"], ["see c", "then a"]) == [3, 2, 1]
    assert (found.answer, found.provenance) == ("France", "terminal")


def test_topics_that_are_joined_are_judged_once(make_graph: MakeGraph) -> None:  # 5
    """More hops find no other shortest paths; topics that are joined late are judged once they are."""
    graph = make_graph(5, 1, [(i, 0, i + 1) for i in range(4)])
    # From 0 to 1 there is one round, and step 9 goes on to 2; to 4 they are two, and there is nothing beyond.
    for goal, judged in ((1, 1 + 1), (4, 2)):
        script = Script(pog_judge=NO, pog_predict={"names": []}, pog_summary={"text": "so"})
        rival(graph, script).answer([Query(f"What joins it and Entity {goal}?", topic=0)])
        assert script.of("pog_plan")[0]["topics"] == ["entity 0", f"entity {goal}"]
        assert script.count("pog_judge.calls") == script.count("pog_summary.calls") == judged, goal


def test_a_single_topic_is_judged_after_every_hop(make_graph: MakeGraph) -> None:
    script = Script(pog_judge=NO, pog_predict={"names": []}, pog_summary={"text": "so"})
    rival(make_graph(2, 1, [(0, 0, 1)]), script).answer([Query("?", topic=0)])
    assert script.count("pog_judge.calls") == 3, "though there is but one path"


def test_only_what_is_near_all_topics_is_left(make_graph: MakeGraph) -> None:
    graph = make_graph(9, 1, [(i, 0, i + 1) for i in range(8)])
    system = rival(graph, Script(), d_max=3)
    assert system._subgraph([4]).inside.nonzero()[0].tolist() == [1, 2, 3, 4, 5, 6, 7]  # 3
    assert system._subgraph([3, 5]).inside.nonzero()[0].tolist() == [2, 3, 4, 5, 6]  # 4
    assert system._subgraph([0, 8]).inside.nonzero()[0].tolist() == [0, 1, 2, 3, 8]


def test_predicted_entities_add_paths(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        pog_plan=PLAN,
        pog_best=take("-> Rhine"),
        pog_judge=lambda data: {"sufficient": "Rhine" in str(data["paths"]), "answer": "Rhein"},
        pog_predict={"names": ["Rhine", "Rhinestone cowboy", "", "Rhine"]},
    )
    system = rival(toy_graph, script, d_max=2, hub_cap=1)
    (found,) = system.answer([Query("capital?", topic=toy_graph.entity_index("par"))])
    assert (found.answer, found.answer_entity) == ("Rhein", toy_graph.entity_index("rhi"))  # by its alias
    assert found.provenance == "stopped"
    assert "pog_predict" in script.order  # 8


def test_then_one_hop_further_then_its_own_knowledge(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        pog_plan={"chain": [], "sub_questions": []},
        pog_judge=NO,
        pog_predict={"names": []},
        pog_answer={"answer": "Europe"},
    )
    system = rival(toy_graph, script, d_max=1)
    (found,) = system.answer([Query("?", topic=toy_graph.entity_index("par"))])
    # 5 to 7 with one hop, 8 without names, 9, 10
    asked = [step for step in script.order if step not in ("pog_best", "pog_branches")]
    assert asked == [
        "pog_plan",
        "pog_summary",
        "pog_judge",
        "pog_predict",
        "pog_summary",
        "pog_judge",
        "pog_answer",
    ]
    before, after = (data["paths"] for data in script.of("pog_judge"))
    assert after[: len(before)] == before
    assert len(before) < len(after) <= 10
    assert {path.count("->") // 2 for path in after} == {1, 2}
    assert (found.answer, found.provenance) == ("Europe", "terminal")
    assert found.answer_entity == toy_graph.entity_index("eu")


def test_an_endless_chain_is_cut(toy_graph: KnowledgeGraph) -> None:
    script = Script(pog_plan={"chain": ["x" * 20] * 5000, "sub_questions": ["y"] * 5000}, pog_judge=NO)
    rival(toy_graph, script, d_max=1).answer([Query("?", topic=toy_graph.entity_index("fr"))])
    (shown, *_) = script.of("pog_judge")
    assert (len(shown["chain"]), len(shown["sub_questions"])) == (12, 4)


def test_no_topic_and_no_edges(toy_graph: KnowledgeGraph) -> None:
    script = Script(pog_answer={"answer": "Atlantis"})
    queries = [Query("who?"), Query("where?", topic=toy_graph.entity_index("lone"))]
    for found in rival(toy_graph, script).answer(queries):
        assert (found.answer, found.provenance, found.paths) == ("Atlantis", "image_only", ())
    assert script.count("pog_plan.fallback") == 2
    (silent,) = rival(toy_graph, Script()).answer([Query("who?")])
    assert (silent.answer, silent.provenance) == ("", "abstained")


def test_neither_order_nor_batch_changes_an_answer(toy_graph: KnowledgeGraph) -> None:
    script = Script(pog_plan=PLAN, pog_judge=NO, pog_answer={"answer": "euro"})
    queries = [Query(f"{id}?", topic=toy_graph.entity_index(id)) for id in ("fr", "eu", "lone")]
    whole = rival(toy_graph, script).answer(queries)
    assert free_of_time(whole) == free_of_time(
        rival(toy_graph, script, batch_size=1).answer(queries[::-1])[::-1]
    )


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=12), st.lists(st.text(max_size=12), max_size=4))
def test_cosines_of_names_are_cosines(name: str, others: list[str]) -> None:
    found = tf_idf(name, [*others, name])
    assert all(-1e-9 <= cosine <= 1 + 1e-9 for cosine in found)
    assert found[-1] == pytest.approx(1) or not name.strip()


def test_names_that_share_little_are_far_apart() -> None:
    near, far, folded = tf_idf("Rhine", ["Rhone", "Danube", "RHINE"])
    assert far == 0
    assert 0 < near < 0.8
    assert folded == pytest.approx(1)


def test_distinct_keeps_the_first() -> None:
    paths = [Path((0, 1), (0,), 0.5), Path((0, 2), (0,)), Path((0, 1), (0,), 0.1)]
    assert distinct(paths) == paths[:2]


@pytest.mark.parametrize(
    "wrong", [{"d_max": 0}, {"keep": 0}, {"hub_cap": 0}, {"combined": 0}, {"branches": 2}]
)
def test_values_that_cannot_work_are_refused(toy_graph: KnowledgeGraph, wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="system"):
        rival(toy_graph, Script(), **wrong)
