from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, disturb, ring_triples, states_and_frontier
from torch import nn

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.learned import LearnedDepthAnalyzer
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.features import GraphFeatures, entity_types
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.model import LearnedParts
from vispath_lit.types import Intents, Paths

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


@pytest.fixture(scope="module")
def encoder() -> WordEncoder:
    return WordEncoder()


def test_no_weight_belongs_to_a_graph(
    graph: KnowledgeGraph, encoder: WordEncoder, toy_graph: KnowledgeGraph
) -> None:
    def weights(g: KnowledgeGraph) -> dict[str, torch.Size]:
        parts = LearnedParts(
            {
                "intent": LearnedIntent(g, encoder, width=16),
                "edge_scorer": LearnedEdgeScorer(g, encoder, width=16),
                "chain_scorer": LearnedChainScorer(g, encoder, width=16),
                "analyzer": LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3, width=16),
            }
        )
        assert parts.trained_names() == set(parts.state_dict())
        return {name: weight.shape for name, weight in parts.state_dict().items()}

    assert weights(graph) == weights(toy_graph)


def test_every_weight_gets_a_gradient_once_the_last_layers_move(
    graph: KnowledgeGraph, encoder: WordEncoder
) -> None:
    states, frontier = states_and_frontier(graph, 1)
    intent, edge = LearnedIntent(graph, encoder, width=16), LearnedEdgeScorer(graph, encoder, width=16)
    chain = LearnedChainScorer(graph, encoder, width=16)
    learned: list[nn.Module] = [intent, edge, chain]
    for part in learned:
        disturb(part)
    texts, intents = PlainTexts(graph, encoder), intent(states)
    rows = texts.edge_vectors(frontier.relation, frontier.tail)
    chains = states.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    chains = Paths(chains.entities, chains.relations, chains.state, chains.scores, torch.randn(len(chains)))
    own = Intents(intents.vectors[frontier.edge_path], intents.question, intents.texts)
    loss = (edge(frontier, rows, intents) ** 2).mean()
    loss = loss + (chain(chains, texts.chain_vectors(chains), intents.question, own) ** 2).mean()
    loss.backward()
    for part in learned:
        for name, weight in part.named_parameters():
            assert weight.grad is not None, name
            # This graph has no types: their one row is zero.
            assert weight.grad.abs().sum() > 0 or name == "steps.of_type.weight", name


def test_types_are_ranked_by_how_many_entities_have_them(toy_graph: KnowledgeGraph) -> None:
    names, rows = entity_types(toy_graph)
    assert names[:2] == ["city", "country"]
    assert len(names) == 6
    for entity in range(toy_graph.num_entities):
        assert names[rows[entity] - 1] == toy_graph.type_of(entity)


def test_a_graph_without_types_has_one_row_for_all(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    features = GraphFeatures(graph, encoder)
    assert features.types.shape == (1, encoder.dim)
    assert features.type_of.sum() == 0
    assert features.state_dict() == {}


def test_widths_that_heads_do_not_divide_are_refused(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match=r"intent\.width is 10"):
        LearnedIntent(graph, encoder, width=10, heads=4)
    with pytest.raises(ConfigError, match=r"chain_scorer\.width is 10"):
        LearnedChainScorer(graph, encoder, width=10, heads=4)


def test_a_fixed_intent_cannot_be_trained(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match="QuestionIntent cannot be trained"):
        LearnedParts({"intent": QuestionIntent(encoder)})
