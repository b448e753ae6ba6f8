from __future__ import annotations

import torch

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, fact, verbalize
from vispath_lit.types import Paths


def test_edge_texts(toy_graph: KnowledgeGraph) -> None:
    relations = [toy_graph.relation_index(r) for r in ("capital", "~capital", "~borders")]
    tails = [toy_graph.entity_index(e) for e in ("par", "fr", "de")]
    expected = ["capital Paris", "capital of France", "inverse of borders Germany"]
    assert edge_texts(toy_graph, relations, tails) == expected
    assert edge_texts(toy_graph, torch.tensor(relations), torch.tensor(tails)) == expected
    assert edge_texts(toy_graph, [], []) == []


def test_verbalize(toy_graph: KnowledgeGraph) -> None:
    index = toy_graph.entity_index
    start = Paths.starts(torch.tensor([index("ber"), index("zur")]), torch.tensor([0, 1]))
    assert verbalize(toy_graph, start) == ["Berlin", "Zürich"]
    step = torch.tensor([toy_graph.relation_index("~capital"), toy_graph.relation_index("located_in")])
    one = start.extend(torch.tensor([0, 1]), step, torch.tensor([index("de"), index("ch")]))
    two = one.extend(
        torch.tensor([0]), torch.tensor([toy_graph.relation_index("currency")]), torch.tensor([index("eur")])
    )
    assert verbalize(toy_graph, one) == ["Berlin capital of Germany", "Zürich located in Switzerland"]
    assert verbalize(toy_graph, two) == ["Berlin capital of Germany currency euro"]
    mixed = [*start.records(), *two.records()]
    assert verbalize(toy_graph, mixed) == ["Berlin", "Zürich", "Berlin capital of Germany currency euro"]
    assert verbalize(toy_graph, []) == []


def test_a_fact_is_told_as_the_graph_holds_it(toy_graph: KnowledgeGraph) -> None:
    paris, france = toy_graph.entity_index("par"), toy_graph.entity_index("fr")
    forward, back = toy_graph.relation_index("capital"), toy_graph.relation_index("~capital")
    assert fact(toy_graph, france, forward, paris) == "France, capital, Paris"
    assert fact(toy_graph, paris, back, france) == "France, capital, Paris"
