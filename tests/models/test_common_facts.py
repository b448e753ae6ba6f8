from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods import facts as common
from vispath_lit.models.neighbourhoods.facts import CommonFacts

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
ENTITIES, RELATIONS = 12, 3
Triples = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 2), st.integers(0, 11)), min_size=1, max_size=80, unique=True
)


def slow_facts(triples: Iterable[tuple[int, int, int]], tails: int, least: int) -> list[tuple[int, int]]:
    """(relation, tail) pairs in order: of each relation the tails that most heads share."""
    shared = Counter((r, t) for _, r, t in triples)
    kept = []
    for relation in range(RELATIONS):
        mine = [(-n, t) for (r, t), n in shared.items() if r == relation and n >= least]
        kept += [(relation, t) for _, t in sorted(mine)[:tails]]
    return sorted(kept)


@settings(max_examples=30, deadline=None)
@given(triples=Triples, tails=st.integers(1, 4), least=st.integers(2, 3), chunk=st.sampled_from([1, 7, 1000]))
def test_facts_are_those_of_a_slow_count(
    make_graph: MakeGraph, triples: list[tuple[int, int, int]], tails: int, least: int, chunk: int
) -> None:
    graph = make_graph(ENTITIES, RELATIONS, triples)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(common, "CHUNK", chunk)
        facts = CommonFacts(graph, tails=tails, least=least)
    expected = slow_facts(triples, tails, least)
    assert facts.dim == len(expected) == len(facts.named())
    assert facts.fact_relation.tolist() == [relation for relation, _ in expected]
    heads = [len({h for h, r, _ in triples if r == relation}) for relation, _ in expected]
    shared = [len({h for h, r, t in triples if (r, t) == fact}) for fact in expected]
    assert facts.fact_share.tolist() == pytest.approx([n / m for n, m in zip(shared, heads, strict=True)])
    rows = facts.encode(torch.arange(ENTITIES))
    for entity in range(ENTITIES):
        has = {(r, t) for h, r, t in triples if h == entity}
        assert rows[entity].tolist() == [float(fact in has) for fact in expected]
    asked = torch.tensor([3, 3, 0])
    torch.testing.assert_close(facts.rows(asked).dense().float(), rows[asked])


def test_the_most_shared_of_every_relation_come_first_where_there_are_too_many(make_graph: MakeGraph) -> None:
    triples = [(h, 0, t) for h in range(6) for t in (8, 9)] + [(h, 1, 10) for h in range(3)]
    graph = make_graph(ENTITIES, RELATIONS, triples)
    assert [divmod(int(k), ENTITIES) for k in CommonFacts(graph, least=2, most=2).keys] == [(0, 8), (1, 10)]


def test_settings_that_cannot_work(make_graph: MakeGraph) -> None:
    graph = make_graph(2, 1, [(0, 0, 1)])
    assert np.array_equal(CommonFacts(graph).encode(torch.tensor([0, 1])), np.zeros((2, 0)))
    with pytest.raises(ConfigError, match=r"neighbourhood\.tails is 0"):
        CommonFacts(graph, tails=0)
