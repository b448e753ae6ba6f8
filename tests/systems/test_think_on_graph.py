"""Think-on-Graph step by step (the numbers are those of its docstring), and what it does with odd answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from rival_worlds import Script, TopicOnly, free_of_time, numbers_of

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import System
from vispath_lit.systems.think_on_graph import Pick, Picks, ThinkOnGraph, scores
from vispath_lit.types import Analysis, Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
QUESTION = "What do people pay with in the country whose capital is shown?"
NO = {"sufficient": False, "answer": ""}


def rival(graph: KnowledgeGraph, script: Script, **values: Any) -> ThinkOnGraph:
    return ThinkOnGraph(graph, script.client, TopicOnly(), TopicOnly(), **values)


def pick(*texts: str) -> Any:
    """Picks these relations wherever they are listed, the first with the highest score."""

    def answer(data: dict[str, Any]) -> dict[str, Any]:
        found = numbers_of(data["relations"], *texts)
        return {"picks": [{"number": n, "score": 1 / rank} for rank, n in enumerate(found, 1)]}

    return answer


def test_it_walks_to_an_answer_and_stops_where_the_facts_suffice(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        tog_relations=pick("capital of", "currency"),
        tog_judge=lambda data: {"sufficient": True, "answer": "EUR"} if len(data["facts"]) > 1 else NO,
    )
    system = rival(toy_graph, script)
    assert isinstance(system, System)
    query = Query(QUESTION, topic=toy_graph.entity_index("par"))
    (found,) = system.answer([query])
    euro = toy_graph.entity_index("eur")
    assert (found.answer, found.answer_entity, found.provenance) == ("EUR", euro, "stopped")
    assert [toy_graph.entity_id(e) for e in found.paths[0].entities] == ["par", "fr", "eur"]
    assert found.ranked[0] == euro
    assert found.depth == 2
    assert found.candidates[0].entity == query.topic
    # 1 to 7, twice; one neighbour needs no scores (5)
    assert script.order == ["tog_relations", "tog_judge"] * 2
    assert script.of("tog_judge")[-1]["facts"] == ["France, capital, Paris", "France, currency, euro"]
    assert found.cost.llm_calls == 4
    assert found.cost.vlm_calls == 0
    assert found.cost.text_tokens > 0
    assert {request.temperature for request in script.requests if request.step == "tog_judge"} == {0.0}
    assert {request.temperature for request in script.requests if request.step == "tog_relations"} == {0.4}
    assert {request.most for request in script.requests if request.step == "tog_relations"} == {3}


class Counting(TopicOnly):
    """Remembers which questions it was asked to read."""

    def __init__(self, seen: Sequence[int]) -> None:
        super().__init__(seen)
        self.read: list[str] = []

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        self.read += [query.text for query in queries]
        return super().analyze(queries)


def test_a_granted_start_is_taken_without_reading_the_question(toy_graph: KnowledgeGraph) -> None:
    paris, france = (toy_graph.entity_index(name) for name in ("par", "fr"))
    parts = Counting([france])
    system = ThinkOnGraph(toy_graph, Script(tog_judge=NO).client, parts, parts)
    granted, open_one = Query("a?", topic=paris), Query("b?", Image.new("RGB", (4, 4)))
    found = system.answer([granted, open_one, granted])
    assert [one.candidates[0].entity for one in found] == [paris, france, paris]
    assert found[0].candidates[0].origin == "topic"
    assert parts.read == ["b?"]
    system.answer([granted])
    assert parts.read == ["b?"]


def test_relations_go_both_ways_but_not_straight_back(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_relations=pick("capital of"), tog_judge=NO)
    rival(toy_graph, script, administrative=["part_"]).answer(
        [Query("?", topic=toy_graph.entity_index("par"))]
    )
    first, second = script.of("tog_relations")
    # 2: part_of is administrative here; capital is the way back from France
    assert [item["text"] for item in first["relations"]] == [
        "located in",
        "capital of",
        "inverse of largest city",
    ]
    assert second["entity"] == "France"
    assert "capital" not in [item["text"] for item in second["relations"]]
    assert "inverse of borders" in [item["text"] for item in second["relations"]]


def test_without_a_topic_it_only_thinks(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_thought={"answer": "Paris"})
    (found,) = rival(toy_graph, script).answer([Query("Which city?")])
    assert (found.answer, found.provenance, found.paths) == ("Paris", "image_only", ())
    assert script.order == ["tog_thought"]
    assert script.of("tog_thought")[0]["start"] == ""


def test_an_entity_without_edges_ends_in_thought(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_thought={"answer": "water"})
    (found,) = rival(toy_graph, script).answer([Query("?", topic=toy_graph.entity_index("lone"))])
    assert (found.answer, found.answer_entity, found.provenance) == ("water", None, "terminal")
    assert script.order == ["tog_thought"]
    assert script.of("tog_thought")[0]["start"] == "Atlantis"


def test_a_dead_end_answers_from_the_triples(toy_graph: KnowledgeGraph) -> None:
    script = Script(
        tog_relations=lambda data: pick("capital of")(data) if data["entity"] == "Paris" else {"picks": []},
        tog_judge=NO,
        tog_from_facts={"answer": "France"},
    )
    (found,) = rival(toy_graph, script).answer([Query("?", topic=toy_graph.entity_index("par"))])
    assert (found.answer, found.provenance) == ("France", "fallback")  # 8
    assert script.of("tog_from_facts")[0]["facts"] == ["France, capital, Paris"]
    assert found.paths[0].end == found.answer_entity == toy_graph.entity_index("fr")


def test_an_exhausted_depth_ends_in_thought(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_relations=pick("borders"), tog_judge=NO, tog_thought={"answer": "Germany"})
    (found,) = rival(toy_graph, script, depth=2).answer([Query("?", topic=toy_graph.entity_index("fr"))])
    assert (found.answer, found.provenance) == ("Germany", "terminal")  # 9
    assert script.order.count("tog_judge") == 2
    assert script.order[-1] == "tog_thought"
    assert max(len(path.relations) for path in found.paths) == 2


def test_scores_multiply_and_the_best_of_all_are_kept_without_zeros(make_graph: MakeGraph) -> None:
    graph = make_graph(8, 2, [(0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 1, 4), (0, 1, 5), (6, 0, 7)])
    weights = {"entity 1": 0.9, "entity 2": 0.0, "entity 3": 0.2, "entity 4": 0.5, "entity 5": 0.05}
    script = Script(
        tog_relations={"picks": [{"number": 1, "score": 0.5}, {"number": 2, "score": 1.0}]},
        tog_entities=lambda data: {
            "picks": [{"number": e["number"], "score": weights[e["text"]]} for e in data["entities"]]
        },
        tog_judge=NO,
        tog_thought={"answer": ""},
    )
    (found,) = rival(graph, script, depth=1).answer([Query("?", topic=0)])
    # 5 and 6: 4 has 1.0 * 0.5, 1 has 0.5 * 0.9, 3 has 0.5 * 0.2, 5 has less and 2 has nothing
    assert [path.end for path in found.paths] == [4, 1, 3]
    assert [path.score for path in found.paths] == pytest.approx([0.5, 0.45, 0.1])
    assert (found.answer, found.provenance) == ("", "abstained")
    script.steps["tog_entities"] = {"picks": [{"number": 1, "score": 0.0}]}
    (none,) = rival(graph, script).answer([Query("?!", topic=0)])
    assert none.paths == ()


def test_many_neighbours_are_drawn_by_the_seed(make_graph: MakeGraph) -> None:
    graph = make_graph(41, 1, [(0, 0, i) for i in range(1, 41)])

    def drawn(seed: int, text: str = "?") -> list[str]:
        script = Script(tog_relations={"picks": [{"number": 1, "score": 1.0}]}, tog_judge=NO)
        rival(graph, script, seed=seed, depth=1).answer([Query("before", topic=1), Query(text, topic=0)])
        (data,) = (one for one in script.of("tog_entities") if one["question"] == text)
        return [item["text"] for item in data["entities"]]

    assert len(set(drawn(0))) == 5  # 4
    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1) or drawn(0) != drawn(2)
    small = make_graph(20, 1, [(0, 0, i) for i in range(1, 20)])
    script = Script(tog_relations={"picks": [{"number": 1, "score": 1.0}]}, tog_judge=NO)
    rival(small, script, depth=1).answer([Query("?", topic=0)])
    assert len(script.of("tog_entities")[0]["entities"]) == 19


def test_answers_that_cannot_be_read_take_the_stated_fallbacks(toy_graph: KnowledgeGraph) -> None:
    script = Script()
    (found,) = rival(toy_graph, script).answer([Query("?", topic=toy_graph.entity_index("fr"))])
    assert (found.answer, found.provenance) == ("", "abstained")
    assert script.count("tog_relations.fallback") == 1  # no relation
    assert script.count("tog_thought.fallback") == 1
    script = Script(tog_relations=pick("borders"), tog_thought={"answer": "x"})
    (found,) = rival(toy_graph, script, depth=1).answer([Query("?", topic=toy_graph.entity_index("fr"))])
    assert script.count("tog_entities.fallback") == 1  # even scores
    assert {round(path.score, 6) for path in found.paths} == {round(1 / 3, 6)}
    assert script.count("tog_judge.fallback") == 1  # insufficient
    assert found.answer == "x"


def test_sufficient_without_an_answer_is_not_sufficient(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_relations=pick("capital"), tog_judge={"sufficient": True, "answer": " "})
    (found,) = rival(toy_graph, script, depth=1).answer([Query("?", topic=toy_graph.entity_index("fr"))])
    assert found.provenance == "abstained"


def test_a_back_end_that_gives_out_fails_its_question_alone(toy_graph: KnowledgeGraph) -> None:
    def relations(data: dict[str, Any]) -> Any:
        return None if data["question"] == "bad" else {"picks": []}

    script = Script(tog_relations=relations, tog_thought={"answer": "fine"})
    topic = toy_graph.entity_index("fr")
    queries = [Query("good", topic=topic), Query("bad", topic=topic), Query("good too", topic=topic)]
    found = rival(toy_graph, script).answer(queries)
    assert [one.provenance for one in found] == ["terminal", "failed", "terminal"]
    assert found[1].answer == ""
    assert "tog_relations" in found[1].statement


def test_neither_order_nor_batch_changes_an_answer(toy_graph: KnowledgeGraph) -> None:
    script = Script(tog_relations=pick("borders", "currency"), tog_judge=NO, tog_thought={"answer": "euro"})
    queries = [
        Query(f"{name}?", topic=toy_graph.entity_index(name)) for name in ("fr", "de", "eu", "lone", "mc")
    ]
    whole = rival(toy_graph, script).answer(queries)
    single = rival(toy_graph, script, batch_size=1).answer(queries[::-1])[::-1]
    assert free_of_time(whole) == free_of_time(single)
    assert rival(toy_graph, script).answer([]) == []
    same = rival(toy_graph, script).answer([queries[0], queries[0]])
    assert same[0].cost.llm_calls == same[1].cost.llm_calls > 0


reply = st.builds(
    Picks,
    picks=st.lists(
        st.builds(Pick, number=st.integers(-5, 30), score=st.floats(allow_nan=True, allow_infinity=True)),
        max_size=9,
    ),
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(reply, st.integers(1, 12), st.integers(1, 4))
def test_scores_are_of_listed_items_in_range_and_in_order(said: Picks, count: int, most: int) -> None:
    found = scores(said, count, most)
    assert len(found) <= most
    assert len({place for place, _ in found}) == len(found)
    assert all(0 <= place < count and 0 <= score <= 1 for place, score in found)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(said=st.text(max_size=40), topic=st.sampled_from(["fr", "lone", "mc", "eu"]))
def test_whatever_is_said_there_is_one_prediction(toy_graph: KnowledgeGraph, said: str, topic: str) -> None:
    script = Script(
        tog_relations=pick("borders", "located in"),
        tog_judge={"sufficient": True, "answer": said},
        tog_thought={"answer": said},
    )
    (found,) = rival(toy_graph, script, depth=1).answer([Query(said, topic=toy_graph.entity_index(topic))])
    assert (found.provenance == "abstained") == (found.answer == "")
    assert len(found.answer) <= 300


def test_administrative_is_a_list(toy_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="expected a list of beginnings"):
        rival(toy_graph, Script(), administrative="type.")


@pytest.mark.parametrize("wrong", ["width", "depth", "many", "sample", "batch_size"])
def test_values_that_cannot_work_are_refused(toy_graph: KnowledgeGraph, wrong: str) -> None:
    with pytest.raises(ConfigError, match=f"system.{wrong} is 0"):
        rival(toy_graph, Script(), **{wrong: 0})
