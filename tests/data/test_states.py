from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch

from vispath_lit.data.datamodule import QuestionDataModule, SeededBatches
from vispath_lit.data.states import (
    HopStates,
    QuestionBatch,
    StateBuilder,
    StateSettings,
    _balanced_keys,
)
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Analysis, Paths, Query, Question

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
ANALYSIS = Analysis("", "", "", (0.5, 0.5))
QUESTIONS = [
    Question(
        id="two",
        text="what is the capital of the neighbour?",
        topic_entity="fr",
        gold_paths=((("borders", "de"), ("capital", "ber")), (("~borders", "de"), ("capital", "ber"))),
    ),
    Question(
        id="one", text="what do they pay with?", topic_entity="de", gold_paths=((("currency", "eur"),),)
    ),
    Question(
        id="three",
        text="where is the river?",
        topic_entity="ch",
        gold_paths=((("borders", "fr"), ("~flows_through", "rhi"), ("located_in", "eu")),),
    ),
]


def builder(graph: KnowledgeGraph, settings: StateSettings | None = None) -> StateBuilder:
    return StateBuilder(graph, supervise(graph, QUESTIONS), [ANALYSIS] * 3, settings or StateSettings())


def walk(batch: QuestionBatch) -> list[HopStates]:
    """All hops, with siblings at random."""
    hops = [batch.first()]
    while (following := batch.next(hops[-1], batch.siblings(hops[-1]))) is not None:
        hops.append(following)
    return hops


def same(a: HopStates, b: HopStates) -> bool:
    pairs = [
        (a.question, b.question),
        (a.weight, b.weight),
        (a.accepted, b.accepted),
        (a.gold_edge, b.gold_edge),
        (a.parent_edge, b.parent_edge),
        (a.frontier.edge_path, b.frontier.edge_path),
        (a.frontier.relation, b.frontier.relation),
        (a.frontier.tail, b.frontier.tail),
        (a.frontier.paths.entities, b.frontier.paths.entities),
        (a.frontier.paths.relations, b.frontier.paths.relations),
    ]
    return all(torch.equal(x, y) for x, y in pairs)


def test_the_candidate_set_is_that_of_the_search(toy_graph: KnowledgeGraph) -> None:
    for states in walk(builder(toy_graph).batch([0, 1, 2], [5])):
        frontier = expand(toy_graph, states.frontier.paths)
        assert torch.equal(states.frontier.relation, frontier.relation)
        assert torch.equal(states.frontier.tail, frontier.tail)
        assert torch.equal(states.frontier.edge_path, frontier.edge_path)


def test_the_only_edge_of_a_relation_that_no_gold_path_walks_may_be_left_out(make_graph: MakeGraph) -> None:
    # Relation 0 is walked. Relations 1 and 2 are not; of 1 the start has one tail, of 2 it has two.
    triples = [(0, 0, 1), (0, 1, 2), (0, 2, 3), (0, 2, 4), (5, 1, 0), (6, 2, 0), (7, 0, 0), (8, 0, 0)]
    graph = make_graph(9, 3, triples)
    asked = [Question(id="q", text="which one?", topic_entity="e0", gold_paths=((("r0", "e1"),),))]
    found = {}
    for unknown in (True, False):
        settings = StateSettings(unknown=unknown)
        built = StateBuilder(graph, supervise(graph, asked), [ANALYSIS], settings)
        states = built.batch([0], [5]).first()
        assert (states.weight[states.gold_edge] > 0).all()
        edges = zip(states.frontier.relation.tolist(), states.frontier.tail.tolist(), strict=True)
        found[unknown] = {(graph.relation_id(r % 3), r >= 3, tail) for r, tail in edges}
    alone = {("r1", False, 2), ("r1", True, 5), ("r2", True, 6)}
    several = {("r2", False, 3), ("r2", False, 4), ("r0", False, 1), ("r0", True, 7), ("r0", True, 8)}
    assert found == {True: alone | several, False: several}


def test_positives_are_the_accepted_steps_of_accepted_prefixes_and_nothing_else(
    toy_graph: KnowledgeGraph,
) -> None:
    built = builder(toy_graph)
    for seed in range(5):
        batch = built.batch([0, 1, 2], [seed])
        for hop, states in enumerate(walk(batch)):
            frontier = states.frontier
            for edge in range(len(frontier)):
                path = int(frontier.edge_path[edge])
                question = int(states.question[frontier.paths.state[path]])
                walked = list(
                    zip(
                        frontier.paths.relations[path].tolist(),
                        frontier.paths.entities[path, 1:].tolist(),
                        strict=True,
                    )
                )
                walked.append((int(frontier.relation[edge]), int(frontier.tail[edge])))
                gold = [
                    [(toy_graph.relation_index(r), toy_graph.entity_index(e)) for r, e in path]
                    for path in QUESTIONS[question].gold_paths
                ]
                assert bool(states.weight[edge] > 0) == any(g[: hop + 1] == walked for g in gold)


def test_each_state_begins_with_an_accepted_prefix_and_ends_with_its_question(
    toy_graph: KnowledgeGraph,
) -> None:
    hops = walk(builder(toy_graph).batch([0, 1, 2], [0]))
    assert [states.question.tolist() for states in hops] == [[0, 1, 2], [0, 2], [2]]
    for states in hops:
        paths = states.frontier.paths
        first = torch.searchsorted(paths.state, torch.arange(len(states.states)))
        assert states.accepted[first].all()
        assert torch.bincount(paths.state).max() <= 3
        assert (states.weight[states.gold_edge] > 0).all()
        assert torch.equal(states.frontier.edge_path[states.gold_edge], first)
    assert len(hops[1].frontier.paths) == 6  # room for two distractors each, and siblings enough


def test_distractors_are_the_edges_given_best_first(toy_graph: KnowledgeGraph) -> None:
    batch = builder(toy_graph).batch([0], [0])
    states = batch.first()
    gold = int(states.gold_edge[0])
    wrong = [edge for edge in range(len(states.frontier)) if edge != gold]
    chosen = torch.tensor([wrong[3], gold, wrong[1], wrong[2]])
    following = batch.next(states, chosen)
    assert following is not None
    assert following.parent_edge.tolist() == [gold, wrong[3], wrong[1]]
    assert torch.equal(following.frontier.paths.ends, states.frontier.tail[following.parent_edge])


def test_the_same_seed_gives_the_same_states_and_another_one_others(toy_graph: KnowledgeGraph) -> None:
    built = builder(toy_graph)
    hops = [walk(built.batch([0, 2], [seed])) for seed in (1, 1, 2)]
    assert all(same(a, b) for a, b in zip(hops[0], hops[1], strict=True))
    assert not all(same(a, b) for a, b in zip(hops[0], hops[2], strict=True))


def test_siblings_are_rejected_edges_of_distinct_relations_first(toy_graph: KnowledgeGraph) -> None:
    counts: dict[int, int] = {}
    batch = builder(toy_graph).batch([1], [0])
    states = batch.first()
    for _ in range(300):
        rows = batch.siblings(states)
        assert (states.weight[rows] == 0).all()
        assert len(rows) == 2
        for relation in states.frontier.relation[rows].tolist():
            counts[relation] = counts.get(relation, 0) + 1
    size = torch.bincount(states.frontier.relation[states.weight == 0])
    rare = next(r for r in counts if size[r] == 1)
    common = max(counts, key=lambda r: int(size[r]))
    assert size[common] > 1
    assert counts[common] < 1.5 * counts[rare]


def test_a_gold_edge_outside_the_candidate_set_ends_the_walk(toy_graph: KnowledgeGraph) -> None:
    """Each path may look at one edge a direction only; the accepted one is not among them."""
    states = builder(toy_graph, StateSettings(hub_cap=1)).batch([1], [0]).first()
    assert states.gold_edge.tolist() == [-1]
    assert (states.weight == 0).all()
    batch = builder(toy_graph, StateSettings(hub_cap=1)).batch([2], [0])
    first = batch.first()
    if int(first.gold_edge[0]) == -1:
        assert batch.next(first, batch.siblings(first)) is None


def test_a_hub_is_sampled_evenly_over_its_relations_with_every_positive(make_graph: MakeGraph) -> None:
    triples = [(0, 0, t) for t in range(1, 200)] + [(0, r, 200 + r) for r in range(1, 6)]
    graph = make_graph(210, 6, triples)
    gold = tuple((("r0", f"e{t}"),) for t in (3, 7, 150))
    data = supervise(graph, [Question(id="hub", text="?", topic_entity="e0", gold_paths=gold)])
    for seed in range(5):
        batch = StateBuilder(graph, data, [ANALYSIS], StateSettings(edges=12)).batch([0], [seed])
        states = batch.first()
        relation, tail = states.frontier.relation.tolist(), states.frontier.tail.tolist()
        assert len(relation) == 12
        assert set(range(1, 6)) <= set(relation)
        assert {3, 7, 150} <= set(tail)
        assert list(zip(relation, tail, strict=True)) == sorted(zip(relation, tail, strict=True))
        assert tail[states.gold_edge[0]] in (3, 7, 150)
    everything = StateBuilder(graph, data, [ANALYSIS], StateSettings(edges=300)).batch([0], [0]).first()
    assert len(everything.frontier) == 204


@pytest.mark.parametrize("limit", [1, 5, 30, 400])
def test_a_sample_holds_the_smallest_keys_of_each_path(make_graph: MakeGraph, limit: int) -> None:
    graph = make_graph(210, 6, [(0, t % 6, t) for t in range(1, 200)] + [(1, 0, 0), (2, 1, 0)])
    data = supervise(graph, [Question(id="q", text="?", topic_entity="e0", gold_paths=((("r1", "e1"),),))])
    batch = StateBuilder(graph, data, [ANALYSIS], StateSettings(edges=limit)).batch([0], [1])
    frontier = expand(graph, Paths.starts(torch.tensor([0, 5, 0, 1, 0]), torch.arange(5)))
    edge_path = frontier.edge_path.numpy()
    positive = np.random.default_rng(0).random(len(edge_path)) < 0.05
    before = batch.rng.bit_generator.state
    kept = batch._sample(frontier, positive).tolist()
    batch.rng.bit_generator.state = before
    large = np.flatnonzero(np.bincount(edge_path)[edge_path] > limit)
    group = edge_path[large] * 12 + frontier.relation.numpy()[large]
    keys = dict(zip(large.tolist(), _balanced_keys(group, batch.rng), strict=True))
    expected: set[int] = set()
    for path in range(5):
        rows = np.flatnonzero(edge_path == path).tolist()
        ranked = sorted(rows, key=lambda row: (not positive[row], keys.get(row, 0.0)))
        expected |= set(ranked[: max(limit, int(positive[rows].sum()))])
    assert kept == sorted(expected)


def test_batches_cover_each_question_once_an_epoch_in_a_new_order() -> None:
    batches = SeededBatches(10, 3, seed=4, shuffle=True)
    orders = []
    for epoch in range(2):
        batches.set_epoch(epoch)
        orders.append([i for batch in batches for i in batch])
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(10))
    assert orders[0] != orders[1]
    assert len(batches) == 4


def test_texts_of_about_equal_length_share_a_batch() -> None:
    lengths = np.random.default_rng(0).integers(10, 200, 1000).tolist()
    batches = list(SeededBatches(1000, 8, seed=1, shuffle=True, lengths=lengths))
    assert sorted(i for batch in batches for i in batch) == list(range(1000))
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert padded < 1.1 * sum(lengths)
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert longest != sorted(longest)


def test_batches_resume_where_they_stopped() -> None:
    whole = list(SeededBatches(10, 3, seed=4, shuffle=True))
    first = SeededBatches(10, 3, seed=4, shuffle=True)
    walked = iter(first)
    done = [next(walked), next(walked)]
    second = SeededBatches(10, 3, seed=4, shuffle=True)
    second.load_state_dict(first.state_dict())
    second.set_epoch(0)
    assert done + list(second) == whole


def test_replicas_share_the_batches_without_overlap() -> None:
    shares = [list(SeededBatches(20, 3, 0, True, rank, 2)) for rank in range(2)]
    assert [len(share) for share in shares] == [3, 3]
    flat = [i for share in shares for batch in share for i in batch]
    assert len(set(flat)) == len(flat)


def test_a_split_without_supervision_is_refused(toy_graph: KnowledgeGraph) -> None:
    nothing = supervise(toy_graph, [Question(id="x", text="?")])

    def analyze(queries: object) -> list[Analysis]:
        return []

    with pytest.raises(DataError, match="none of the 1 training questions"):
        QuestionDataModule(toy_graph, nothing, nothing, analyze, StateSettings())


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"states\.paths"):
        StateSettings(paths=0)


def test_queries_hold_nothing_but_the_words(toy_graph: KnowledgeGraph) -> None:
    assert builder(toy_graph).batch([1], [0]).queries[0].text == QUESTIONS[1].text
    assert builder(toy_graph).batch([1], [0]).queries[0].topic is Query("").topic
