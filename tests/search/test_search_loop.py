from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
import torch
from search_worlds import DIM, ExactTexts, HashEncoder, TableGrounder, World, WorldMaker
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import expand
from vispath_lit.protocols import TextStage
from vispath_lit.search import discovery
from vispath_lit.search.beams import starts
from vispath_lit.search.discovery import frontiers
from vispath_lit.search.grounding import alignment_scores, promote
from vispath_lit.search.pruning import objective_texts, pick, split
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Analysis, Candidate, Evidence, Intents, Path, Paths, Query, Rows, States


@pytest.fixture
def world(make_world: WorldMaker) -> World:
    rng = random.Random(3)
    triples = [(rng.randrange(12), rng.randrange(3), rng.randrange(12)) for _ in range(60)]
    return make_world(triples, [f"thing {i}" for i in range(13)], ["likes", "made by", "part of"])


def questions(count: int) -> dict[str, list[int]]:
    return {f"what is number {i}||{1 + i % 3}": [i % 12] for i in range(count)}


def test_a_question_gets_the_same_answer_alone_and_in_any_batch(world: World) -> None:
    table = questions(17)
    searcher = world.searcher(TableGrounder(table), SearchSettings(m1=4, m2=6, trace="full"))
    together = searcher.search([Query(text) for text in table])
    alone = [searcher.search([Query(text)])[0] for text in table]
    backwards = searcher.search([Query(text) for text in reversed(table)])[::-1]
    assert together == alone == backwards
    assert len({one.answer for one in together}) > 3


def test_settings_bound_what_each_hop_keeps(world: World) -> None:
    table = questions(12)
    chosen = SearchSettings(m1=2, m2=5, m3=3, d_max=3, evidence_checking=False, trace="full")
    for found in world.searcher(TableGrounder(table), chosen).search([Query(text) for text in table]):
        before = 1
        for hop in found.trace:
            assert len(hop.discovered) <= 2 * before  # Eq. 7
            assert len(hop.chains) <= 5
            assert len(hop.kept) <= 3
            before = len(hop.kept)
        assert found.provenance == "terminal"


def test_a_start_without_edges_is_abstained(world: World) -> None:
    lonely = world.searcher(TableGrounder({"q||2": [12], "r||1": []}), SearchSettings())
    stranded, homeless = lonely.search([Query("q||2"), Query("r||1")])
    for found in (stranded, homeless):
        assert (found.answer, found.answer_entity, found.provenance) == ("", None, "abstained")
        assert found.confidence == 0
        assert (found.paths, found.answer_set, found.ranked) == ((), (), ())
    assert [c.entity for c in stranded.candidates] == [12]
    assert homeless.candidates == ()


def test_a_walk_that_ends_before_its_depth_is_terminal(make_world: WorldMaker) -> None:
    world = make_world([(0, 0, 1), (1, 0, 2)], ["a", "b", "c"], ["next"])
    searcher = world.searcher(TableGrounder({"q||4": [0]}), SearchSettings(inverse=False))
    (found,) = searcher.search([Query("q||4")])
    assert found.provenance == "terminal"
    assert {path.end for path in found.paths} == {1, 2}
    assert len(found.trace) == 3
    assert found.trace[-1].kept == ()


def test_a_granted_depth_takes_the_place_of_the_predicted_one(world: World) -> None:
    text = "q||1"
    searcher = world.searcher(TableGrounder({text: [0]}), SearchSettings(d_max=3))
    found = searcher.search([Query(text), Query(text, depth=2), Query(text, depth=9), Query(text, depth=0)])
    assert [one.depth for one in found] == [1, 2, 3, 1]
    assert [len(one.trace) for one in found] == [1, 2, 3, 1]


class Judge:
    """Answerable at the hops it is told, with the hop as the answer."""

    def __init__(self, hops: set[int]) -> None:
        self.hops = hops

    def judge(
        self,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        kept: Sequence[Sequence[Path]],
        hop: int,
    ) -> list[Evidence]:
        return [
            Evidence(f"z{hop}", float(hop in self.hops), None, paths[0].end, tuple(paths), hop)
            for paths in kept
        ]


@pytest.mark.parametrize(
    ("answerable", "provenance", "statement", "hops"),
    [
        ({1, 2, 3, 4}, "stopped", "z3", 3),  # first hop with eta = 1 and i >= D^
        ({4}, "stopped", "z4", 4),
        ({1}, "fallback", "z1", 4),
        ({1, 2}, "fallback", "z2", 4),  # the latest one wins
        (set(), "terminal", "", 4),
    ],
)
def test_the_stop_rule_and_the_fallback(
    world: World, answerable: set[int], provenance: str, statement: str, hops: int
) -> None:
    searcher = world.searcher(TableGrounder({"q||3": [0]}), SearchSettings())
    searcher.judge = Judge(answerable)
    (found,) = searcher.search([Query("q||3")])
    assert (found.provenance, found.statement, len(found.trace)) == (provenance, statement, hops)
    if found.provenance != "terminal":
        assert len(found.paths[0].relations) == int(statement[1:])


@pytest.mark.parametrize(
    ("belief", "provenance", "statement", "hops"),
    [
        ([0.1, 0.7, 0.9, 0.9], "stopped", "z2", 2),  # without the floor the first one past the gate
        ([0.2, 0.1, 0.4, 0.3], "fallback", "z3", 4),  # none is past it: the likeliest
        ([0.0, 0.0, 0.0, 0.0], "terminal", "", 4),
    ],
)
def test_a_judge_with_doubts_stops_where_it_believes(
    world: World, belief: list[float], provenance: str, statement: str, hops: int
) -> None:
    class Doubtful(Judge):
        def judge(
            self,
            queries: Sequence[Query],
            analyses: Sequence[Analysis],
            kept: Sequence[Sequence[Path]],
            hop: int,
        ) -> list[Evidence]:
            sure = super().judge(queries, analyses, kept, hop)
            return [replace(one, answerability=belief[hop - 1]) for one in sure]

    searcher = world.searcher(TableGrounder({"q||3": [0]}), SearchSettings(depth_floor=False))
    searcher.judge = Doubtful(set())
    (found,) = searcher.search([Query("q||3")])
    assert (found.provenance, found.statement, len(found.trace)) == (provenance, statement, hops)


def test_two_stages_with_a_wide_shortlist_equal_the_exact_one(world: World) -> None:
    class TwoStages:
        @property
        def stages(self) -> tuple[TextStage, ...]:
            exact = ExactTexts(world.graph, world.encoder)
            return ExactTexts(world.graph, Backwards(), keep=50), exact

    class Backwards(HashEncoder):
        def vector(self, text: str) -> list[float]:
            return super().vector(text[::-1])

    table = questions(10)
    queries = [Query(text) for text in table]
    exact = world.searcher(TableGrounder(table), SearchSettings()).search(queries)
    assert world.searcher(TableGrounder(table), SearchSettings(), TwoStages()).search(queries) == exact


def test_stages_that_cannot_decide_are_refused(world: World) -> None:
    class Endless:
        stages = (ExactTexts(world.graph, world.encoder, keep=2),)

    with pytest.raises(ConfigError, match=r"keep \[2\]"):
        world.searcher(TableGrounder({}), SearchSettings(), Endless())


def test_a_hop_carries_the_likelihood_of_its_steps(world: World) -> None:
    searcher = world.searcher(TableGrounder({}), SearchSettings(m1=3))
    analysis = Analysis("", "", "", (1.0,))
    states = States([Query("a"), Query("b")], [analysis] * 2, starts([0, 1]))
    first = searcher.hop(states)
    second = searcher.hop(replace(states, paths=first.kept))
    for step, paths in ((first, states.paths), (second, first.kept)):
        edges = expand(world.graph, paths)
        vectors = ExactTexts(world.graph, world.encoder).edge_vectors(edges.relation, edges.tail).dense()
        logits = (vectors * step.intents.vectors[edges.edge_path]).sum(-1)
        state = paths.state[edges.edge_path]
        for row in range(len(step.kept)):
            parent = int(
                torch.nonzero(
                    (paths.entities == step.kept.entities[row, :-1]).all(-1)
                    & (paths.relations == step.kept.relations[row, :-1]).all(-1)
                    & (paths.state == step.kept.state[row])
                )[0, 0]
            )
            mine = (
                (edges.edge_path == parent)
                & (edges.relation == step.kept.relations[row, -1])
                & (edges.tail == step.kept.entities[row, -1])
            )
            inside = state == step.kept.state[row]
            expected = logits[mine][0] - torch.logsumexp(logits[inside], 0)
            assert paths.log_likelihood is not None
            assert step.kept.log_likelihood is not None
            total = paths.log_likelihood[parent] + expected
            assert step.kept.log_likelihood[row].item() == pytest.approx(total.item(), abs=1e-5)


@pytest.mark.parametrize(
    ("scores", "order"),
    [
        ([0.1, 0.16, 0.0], [1, 0, 2]),
        ([0.1, 0.14, 0.0], [0, 1, 2]),
        ([0.1, 0.0, 0.155], [0, 1, 2]),  # rank 3 needs delta + 0.01
        ([0.1, 0.0, 0.165], [2, 0, 1]),
        ([-1.0, 0.3, 0.3], [1, 0, 2]),  # a tie goes to the better rank
        ([0.3], [0]),
    ],
)
def test_the_margin_of_eq_3(scores: list[float], order: list[int]) -> None:
    candidates = [Candidate(e, 1.0, "image") for e in range(len(scores))]
    assert [c.entity for c in promote(candidates, scores, 0.05)] == order


def test_eq_8_leaves_empty_parts_out() -> None:
    analyses = [Analysis("", "", sketch, (1.0,)) for sketch in ("", "a, b", "")]
    texts = objective_texts([Query("Q")] * 3, analyses, ["", "", "intent"])
    assert texts == ["Q", "Q a, b", "Q intent"]


def test_the_pick_of_an_examination_keeps_the_order_of_scores() -> None:
    chains = [Path((0, i), (i // 2,), 1.0 - i / 10) for i in range(6)]
    assert pick(chains, [4, 1, 4, 3], SearchSettings(m3=2)) == [1, 3]
    assert pick(chains, [], SearchSettings(m3=2)) == [0, 1]
    distinct = SearchSettings(m3=3, distinct_relations=True)
    assert pick(chains, [], distinct) == [0, 2, 4]
    assert pick(chains, [0, 1, 2], distinct) == [0, 1, 2]


@pytest.mark.parametrize(
    ("key", "value"),
    [("m1", 0), ("m2", -1), ("m3", 31), ("d_max", 0), ("d_max", 99), ("relation_cap", 0), ("hub_cap", 0),
     ("delta", 0.0), ("gate", 0.0), ("gate", 1.5), ("trace", "all")],
)  # fmt: skip
def test_settings_that_cannot_work_name_their_key(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"search.{key}"):
        SearchSettings(**{key: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [1, 20, 10**6])
def test_a_frontier_in_runs_is_the_whole_frontier(world: World, limit: int) -> None:
    paths = starts([3, 3, 12, 5, 0, 12])
    paths = replace(paths, state=torch.tensor([0, 0, 1, 2, 2, 3]))
    whole = expand(world.graph, paths)
    runs = list(frontiers(world.graph, paths, SearchSettings(), limit))
    assert torch.equal(torch.cat([low + run.edge_path for low, run in runs]), whole.edge_path)
    assert torch.equal(torch.cat([run.tail for _, run in runs]), whole.tail)
    assert torch.equal(torch.cat([run.relation for _, run in runs]), whole.relation)
    states = [set(run.paths.state.tolist()) for _, run in runs]
    assert sum(map(len, states)) == 4  # no question is cut in two
    assert all(len(run) <= limit or len(mine) == 1 for (_, run), mine in zip(runs, states, strict=True))
    assert (len(runs) == 1) == (limit == 10**6)


def test_small_runs_change_no_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table = questions(9)
    queries = [Query(text) for text in table]
    searcher = world.searcher(TableGrounder(table), SearchSettings(trace="full"))
    whole = searcher.search(queries)
    monkeypatch.setattr(discovery, "frontiers", partial(frontiers, limit=5))
    assert searcher.search(queries) == whole


class EndIntent:
    """An intent that names the path it belongs to."""

    def __call__(self, states: States) -> Intents:
        ends = states.paths.ends.float()[:, None]
        return Intents(ends.expand(-1, DIM), torch.zeros(len(states), DIM), [""] * len(states))


class ParentScorer:
    """Checks that every chain meets the intent of its parent path."""

    def __call__(self, chains: Paths, texts: Rows, objective: Tensor, intents: Intents) -> Tensor:
        assert torch.equal(intents.vectors[:, 0].long(), chains.entities[:, -2])
        assert texts.dense().shape == (len(chains), DIM)
        return chains.scores


@pytest.mark.parametrize("limit", [1, 10**6])
def test_every_chain_is_scored_with_the_intent_of_its_parent(
    world: World, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(discovery, "frontiers", partial(frontiers, limit=limit))
    table = questions(9)
    searcher = world.searcher(TableGrounder(table), SearchSettings(evidence_checking=False))
    searcher.intent, searcher.chain_scorer = EndIntent(), ParentScorer()
    found = searcher.search([Query(text) for text in table])
    assert all(len(one.paths[0].relations) == 4 for one in found)


def test_the_alignment_of_eq_2_is_the_best_outgoing_relation(world: World) -> None:
    entities = torch.tensor([0, 12, 5, 5])  # 12 has no edge
    asked = world.encoder.encode(["q", "p"])
    relations = world.encoder.encode(world.relation_labels)
    question = torch.tensor([0, 0, 0, 1])
    found = alignment_scores(world.graph, entities, question, asked, relations)
    expected = [
        max([float(asked[q] @ relations[r]) for s, r, _ in world.triples if s == entity] or [-1.0])
        for entity, q in zip(entities.tolist(), question.tolist(), strict=True)
    ]
    assert found.tolist() == expected
    assert expected[1] == -1


def test_chains_become_records_only_when_looked_at() -> None:
    paths = starts([4, 5, 6, 7])
    three, none, one = split(replace(paths, state=torch.tensor([0, 0, 0, 2])), 3)
    assert [len(three), len(none), len(one)] == [3, 0, 1]
    assert [path.end for path in three] == [4, 5, 6]
    assert [path.end for path in three[1:]] == [5, 6]
    assert (three[-1].end, one[0].end, list(none)) == (6, 7, [])
    with pytest.raises(IndexError):
        one[1]
