from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
import torch
from learned_worlds import PlainTexts, WordEncoder, disturb, ring_triples, states_and_frontier
from torch import Tensor

from vispath_lit.kg.distances import from_start
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer, parents
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer, places
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.products import trained_dot
from vispath_lit.models.ranking import best_first, rank_in_run
from vispath_lit.types import Frontier, Intents, Paths, Rows, States

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


@pytest.fixture(scope="module")
def encoder() -> WordEncoder:
    return WordEncoder()


@dataclass
class SomeVectors:
    """A `NeighbourhoodEncoder` of given vectors."""

    vectors: Tensor

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    def rows(self, entities: Tensor) -> Rows:
        return Rows(self.vectors, entities)

    def encode(self, entities: Tensor) -> Tensor:
        return self.vectors[entities]

    def refresh(self, step: int) -> None:
        pass


def test_a_path_is_scored_alike_in_any_company(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    """Batching, other questions and padding change nothing."""
    states, frontier = states_and_frontier(graph, 2)
    intent, scorer = LearnedIntent(graph, encoder, width=16), LearnedEdgeScorer(graph, encoder, width=16)
    disturb(intent.eval())
    disturb(scorer.eval())
    texts = PlainTexts(graph, encoder)
    together = scorer(frontier, texts.edge_vectors(frontier.relation, frontier.tail), intent(states))
    path = 7
    state = int(states.paths.state[path])
    alone = states.paths.select(torch.tensor([path]))
    alone = Paths(alone.entities, alone.relations, torch.tensor([0]), alone.scores)
    own = expand(graph, alone)
    only = States([states.queries[state]], [states.analyses[state]], alone)
    single = scorer(own, texts.edge_vectors(own.relation, own.tail), intent(only))
    torch.testing.assert_close(single, together[frontier.edge_path == path], atol=1e-5, rtol=1e-5)


def test_each_term_of_the_edge_scorer_reads_what_it_should(
    graph: KnowledgeGraph, encoder: WordEncoder
) -> None:
    """With unequal weights everywhere, the logits equal a sum written edge by edge."""
    states, frontier = states_and_frontier(graph, 2, questions=2)
    nearby = SomeVectors(torch.randn(40, 5))
    scorer = LearnedEdgeScorer(graph, encoder, width=8, neighbourhood=nearby).eval()
    disturb(scorer)
    intents = QuestionIntent(encoder)(states)
    texts = PlainTexts(graph, encoder).edge_vectors(frontier.relation, frontier.tail)
    logits = scorer(frontier, texts, intents)
    wanted = scorer._wanted(intents, frontier.paths.state, 2)
    relations, types = scorer.steps.relation_table(), scorer.steps.type_table()
    distance = from_start(graph, frontier).tolist()
    assert len(set(distance)) > 1
    for edge in range(0, len(frontier), 11):
        path = int(frontier.edge_path[edge])
        parts = torch.split_with_sizes(wanted[path], scorer.sizes)
        text, q = texts.vectors[texts.index[edge]], intents.vectors[path]
        walked = frontier.paths.entities[path].tolist()
        tail = int(frontier.tail[edge])
        place = 1 if tail == walked[0] else 2 if tail in walked else 0
        expected = torch.exp(10 * scorer.log_tau) * text @ q / q.norm() + text @ parts[0]
        expected = expected + parts[1] @ relations[frontier.relation[edge]] / 8**0.5
        expected = expected + parts[2] @ types[scorer.features.type_of[tail]] / 8**0.5
        expected = expected + parts[3][place] + parts[4][distance[edge]]
        expected = expected + parts[5] @ nearby.vectors[tail] / 5**0.5
        assert logits[edge].item() == pytest.approx(expected.item(), abs=1e-5)


def test_places_know_where_a_path_has_been() -> None:
    paths = Paths(torch.tensor([[3, 5, 7]]), torch.tensor([[0, 0]]), torch.tensor([0]), torch.zeros(1))
    frontier = Frontier(
        paths, torch.zeros(4, dtype=torch.long), torch.zeros(4, dtype=torch.long), torch.tensor([1, 3, 5, 7])
    )
    assert places(frontier).tolist() == [0, 1, 2, 2]


def test_the_chain_net_equals_plain_attention(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    """Keys and values from tables are those of the summed steps."""
    states, frontier = states_and_frontier(graph, 2, questions=2)
    scorer = LearnedChainScorer(graph, encoder, width=8, heads=2).eval()
    disturb(scorer)
    chains = states.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    asked = torch.randn(len(chains), 8)
    relations, types = scorer.steps.relation_table(), scorer.steps.type_table()
    tokens = types[scorer.features.type_of[chains.entities]] + scorer.hop.weight[: chains.length + 1]
    tokens[:, 1:] += relations[chains.relations]
    query, key_value = scorer.query(tokens[:, -1] + asked), scorer.key_value(tokens)
    key, value = key_value.split(8, dim=2)
    mixed = []
    for head in (slice(0, 4), slice(4, 8)):
        attention = torch.einsum("cw,ctw->ct", query[:, head], key[:, :, head]) / 4**0.5
        mixed.append(torch.einsum("ct,ctw->cw", attention.softmax(dim=1), value[:, :, head]))
    last = tokens[:, -1]
    merged = scorer.merge(torch.cat([*mixed, last, asked, last * asked], dim=1))
    torch.testing.assert_close(scorer._net(chains, asked), scorer.out(merged)[:, 0], atol=1e-5, rtol=1e-5)


def test_likelihood_counts_by_its_mean_over_steps(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    states, frontier = states_and_frontier(graph, 1, questions=2)
    scorer = LearnedChainScorer(graph, encoder, width=8).eval()
    with torch.no_grad():
        scorer.likelihood.fill_(0.05)
    chains = states.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    plain = Paths(chains.entities, chains.relations, chains.state, chains.scores)
    counted = Paths(chains.entities, chains.relations, chains.state, chains.scores, torch.randn(len(chains)))
    question = QuestionIntent(encoder)(states)
    intents = Intents(question.vectors[frontier.edge_path], question.question, question.texts)
    rows, objective = PlainTexts(graph, encoder).chain_vectors(chains), question.question
    more = scorer(counted, rows, objective, intents) - scorer(plain, rows, objective, intents)
    assert counted.log_likelihood is not None
    torch.testing.assert_close(more, 0.5 * counted.log_likelihood / 2, atol=1e-5, rtol=1e-5)


def test_chains_of_one_parent_make_one_run() -> None:
    chains = Paths(
        torch.tensor([[1, 2], [1, 3], [1, 3], [4, 3]]),
        torch.tensor([[0], [0], [1], [0]]),
        torch.tensor([0, 0, 1, 1]),
        torch.zeros(4),
    )
    run, first = parents(chains)
    assert run.tolist() == [0, 0, 1, 2]
    assert first.tolist() == [0, 2, 3]


def test_trained_dot_has_the_gradient_of_a_plain_product() -> None:
    texts = Rows(torch.randn(6, 5, dtype=torch.float64), torch.tensor([0, 3, 3, 5, 1, 2, 0]))
    group = torch.tensor([0, 0, 2, 2, 2, 1, 0])
    vectors = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)

    def product(v: Tensor) -> Tensor:
        return trained_dot(texts, group, v)

    torch.testing.assert_close(product(vectors), (texts.dense() * vectors[group]).sum(dim=1))
    assert torch.autograd.gradcheck(product, (vectors,))


def test_ranking_breaks_ties_by_row() -> None:
    order = best_first(torch.tensor([1.0, 2.0, 2.0, 5.0, 5.0]), torch.tensor([1, 1, 1, 0, 0]))
    assert order.tolist() == [3, 4, 1, 2, 0]
    assert rank_in_run(torch.tensor([0, 0, 1, 1, 1])).tolist() == [0, 1, 0, 1, 2]
