from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from search_worlds import ExactTexts, HashEncoder, TableGrounder, World, WorldMaker

from vispath_lit.protocols import TextStage
from vispath_lit.search.beams import starts
from vispath_lit.search.budget import in_turns, set_aside
from vispath_lit.search.loop import Searcher
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Query, States

KEEP = 4
SETTINGS = SearchSettings(m1=3, m2=6, m3=2, d_max=4, evidence_checking=False, trace="full")
FULL = KEEP * SETTINGS.m1  # edges on a shortlist that nothing bounds
LEAST = 1 + 4 * (2 + KEEP * SETTINGS.m3) + 3 * (1 + 3 * 2)  # texts where every shortlist is M1 wide
TABLE = {f"what is number {i}||4": [10 * i] for i in range(9)}


class Backwards(HashEncoder):
    """Another order of the edges."""

    def vector(self, text: str) -> list[float]:
        return super().vector(text[::-1])


class TwoStages:
    """A shortlist in another order than the exact one, and what the exact one embeds."""

    def __init__(self, world: World, texts: int | None) -> None:
        self.encoder = HashEncoder()
        first = ExactTexts(world.graph, Backwards(), keep=KEEP, texts=texts)
        self.stages: tuple[TextStage, ...] = (first, ExactTexts(world.graph, self.encoder))


@pytest.fixture(scope="module")
def hubs(make_world: WorldMaker) -> World:
    """99 entities, each with some 24 edges of different texts."""
    rng = random.Random(5)
    triples = [(i, rng.randrange(3), j) for i in range(99) for j in rng.sample(range(99), 12)]
    return make_world(triples, [f"thing {i}" for i in range(99)], ["likes", "made by", "part of"])


def search(
    world: World, texts: int | None, settings: SearchSettings = SETTINGS
) -> tuple[Searcher, TwoStages]:
    provider = TwoStages(world, texts)
    return world.searcher(TableGrounder(TABLE), settings, provider), provider


def embedded(world: World, texts: int | None, question: str) -> int:
    """Distinct texts of one question."""
    world.encoder.seen.clear()
    searcher, provider = search(world, texts)
    (found,) = searcher.search([Query(question)])
    assert len(found.paths[0].relations) == 4
    return len({*world.encoder.seen, *provider.encoder.seen})


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6)), max_size=8),
    st.lists(st.integers(-3, 20), min_size=3, max_size=3),
    st.integers(0, 3),
)
def test_turns_equal_those_dealt_one_by_one(
    paths: list[tuple[int, int]], limits: list[int], least: int
) -> None:
    """A path is a question and how many edges it has."""
    paths.sort()
    expected = {(p, turn) for p, (_, size) in enumerate(paths) for turn in range(min(size, least))}
    for asker, limit in enumerate(limits):
        left = limit
        for turn in range(7):
            for p, (owner, size) in enumerate(paths):
                if owner == asker and turn < size and left > 0:
                    expected.add((p, turn))
                    left -= 1
    edges = [(p, turn) for p, (_, size) in enumerate(paths) for turn in range(size)]
    path = torch.tensor([p for p, _ in edges], dtype=torch.long)
    question = torch.tensor([paths[p][0] for p, _ in edges], dtype=torch.long)
    chosen = in_turns(path, question, torch.tensor(limits), least)
    assert {edge for edge, taken in zip(edges, chosen.tolist(), strict=True) if taken} == expected


def test_texts_are_set_aside_for_chains_and_later_hops() -> None:
    settings = SearchSettings(m1=30, m3=3, d_max=4)
    chains = 1 + 4 * (2 + 4 * 3)
    assert [set_aside(4, walked, settings) for walked in range(4)] == [
        chains + later * 3 * 60 for later in (3, 2, 1, 0)
    ]
    assert set_aside(1, 0, settings) == 1 + 4 * (2 + 3) + 3 * 3 * 30
    assert set_aside(4, 9, settings) == chains  # deeper than the search


@pytest.mark.parametrize("texts", [LEAST, 70, 78, 86])
def test_no_question_embeds_more_than_its_bound(hubs: World, texts: int) -> None:
    assert max(embedded(hubs, texts, question) for question in TABLE) <= texts
    assert max(embedded(hubs, None, question) for question in TABLE) > texts


@pytest.mark.parametrize("cap", [None, 1, 2])
def test_a_bound_below_the_least_gives_way_to_the_beam_width(hubs: World, cap: int | None) -> None:
    """Also where of a relation only some edges may be kept."""
    assert all(1 < embedded(hubs, 1, question) <= LEAST for question in TABLE)
    searcher, _ = search(hubs, 1, replace(SETTINGS, relation_cap=cap))
    for found in searcher.search([Query(text) for text in TABLE]):
        paths = 1
        for hop in found.trace:
            assert len(hop.discovered) == SETTINGS.m1 * paths
            paths = len(hop.kept)


def test_what_a_hop_leaves_widens_later_ones(hubs: World) -> None:
    searcher, _ = search(hubs, 86)
    queries = [Query(text) for text in TABLE]
    analyses = searcher.analyzer.analyze(queries)
    first = searcher.hop(States(queries, analyses, starts([start for (start,) in TABLE.values()])))
    assert first.texts.tolist() == [86 - set_aside(KEEP, 0, SETTINGS)] * len(queries)
    states = States(queries, analyses, first.kept)
    thrifty, spent = searcher.hop(states, first.texts - 4), searcher.hop(states, first.texts)
    assert (thrifty.texts >= spent.texts).all()
    assert (thrifty.texts > spent.texts).any()


def test_a_bound_does_not_depend_on_the_batch(hubs: World) -> None:
    searcher, _ = search(hubs, 74)
    queries = [Query(text) for text in TABLE]
    together = searcher.search(queries)
    assert together == [searcher.search([query])[0] for query in queries]
    assert together != search(hubs, None)[0].search(queries)


def test_a_bound_that_is_never_met_changes_nothing(hubs: World) -> None:
    queries = [Query(text) for text in TABLE]
    most = 1 + 4 * (2 + KEEP * SETTINGS.m3) + FULL * (1 + 3 * SETTINGS.m3)
    unbounded = search(hubs, None)[0].search(queries)
    assert search(hubs, most)[0].search(queries) == unbounded


def test_where_no_entity_has_many_edges_the_default_changes_nothing(hubs: World) -> None:
    queries = [Query(text) for text in TABLE]
    unbounded = search(hubs, None, SearchSettings())[0].search(queries)
    assert search(hubs, 900, SearchSettings())[0].search(queries) == unbounded
