"""What the scorers make of the neighbourhoods of tails."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder
from neighbourhood_worlds import COUNT, HUB, KINDS, MakeGraph, crowded, make, move
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.neighbourhoods.compgcn import CompGCNNeighbourhood
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.models.neighbourhoods.none import NoNeighbourhood
from vispath_lit.types import Frontier, Intents, Paths


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return crowded(make_graph)


@pytest.fixture(scope="module")
def words() -> WordEncoder:
    return WordEncoder()


def frontier_of(graph: KnowledgeGraph) -> Frontier:
    paths = Paths.starts(torch.tensor([HUB, 3, 50]), torch.tensor([0, 0, 1]))
    frontier = expand(graph, paths)
    paths = paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    return expand(graph, paths.select(torch.arange(0, len(paths), 4)))


def intents_of(words: WordEncoder, frontier: Frontier) -> Intents:
    question = words.encode(["nick1 then nick2", "nick3"])
    return Intents(question[frontier.paths.state], question, ["", ""])


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_rows_change_no_logit_but_carry_the_gradient(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path, dropout=0.0).train()
    scorer = LearnedEdgeScorer(graph, words, width=8, dropout=0.0, neighbourhood=encoder, fresh=3)
    assert not [name for name in scorer.state_dict() if "neigh" in name]
    move(scorer.train())
    frontier = frontier_of(graph)
    intents = intents_of(words, frontier)
    texts = PlainTexts(graph, words).edge_vectors(frontier.relation, frontier.tail)
    accepted = torch.zeros(len(frontier), dtype=torch.bool)
    accepted[::50] = True
    calls: list[list[int]] = []
    encode = encoder.encode

    def spy(entities: Tensor) -> Tensor:
        calls.append(entities.tolist())
        return encode(entities)

    plain = scorer(frontier, texts, intents)
    encoder.encode = spy  # type: ignore[method-assign]
    logits = scorer(frontier, texts, intents, accepted)
    torch.testing.assert_close(logits, plain, atol=5e-3, rtol=5e-3)
    state = frontier.paths.state[frontier.edge_path]
    hardest = [
        torch.nonzero(state == s)[:, 0][plain[state == s].argsort(descending=True)[:3]] for s in (0, 1)
    ]
    expected = torch.cat([frontier.tail[accepted], *(frontier.tail[rows] for rows in hardest)])
    assert calls == [sorted(set(expected.tolist()))]
    (logits**2).sum().backward()
    for name, weight in encoder.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().sum() > 0 or name == "steps.of_type.weight", name  # there are no types
    assert scorer.out.weight.grad is not None
    assert scorer.out.weight.grad[-8:].abs().sum() > 0


def test_each_edge_gets_the_product_with_its_tail(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(CompGCNNeighbourhood, graph, words, tmp_path)
    scorer = LearnedEdgeScorer(graph, words, width=8, neighbourhood=encoder).eval()
    move(scorer)
    frontier = frontier_of(graph)
    near = torch.randn(len(frontier.paths), 8)
    term = scorer._nearby(frontier, near, None, torch.zeros(len(frontier)), None)
    vectors = encoder.encode(torch.arange(COUNT))
    for edge in range(0, len(frontier), 9):
        expected = near[frontier.edge_path[edge]] @ vectors[frontier.tail[edge]] / 8**0.5
        assert term[edge].item() == pytest.approx(expected.item(), abs=5e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_untrained_scorers_with_neighbourhoods_are_the_fixed_ones(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    frontier = frontier_of(graph)
    intents = intents_of(words, frontier)
    texts = PlainTexts(graph, words).edge_vectors(frontier.relation, frontier.tail)
    encoder = make(kind, graph, words, tmp_path)
    scorer = LearnedEdgeScorer(graph, words, width=8, neighbourhood=encoder).eval()
    expected = FixedEdgeScorer()(frontier, texts, intents)
    torch.testing.assert_close(scorer(frontier, texts, intents), expected, atol=1e-5, rtol=0)


def test_the_chain_scorer_reads_the_neighbourhood_of_each_step(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    """Tokens from tables equal tokens that are summed one by one."""
    encoder = make(CompGCNNeighbourhood, graph, words, tmp_path)
    scorer = LearnedChainScorer(graph, words, width=8, heads=2, neighbourhood=encoder).eval()
    move(scorer)
    frontier = frontier_of(graph)
    chains = frontier.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    asked = torch.randn(len(chains), 8)
    assert scorer.near is not None
    near = scorer.near(encoder.encode(torch.arange(COUNT)))
    tokens = scorer.steps.type_table()[0] + scorer.hop.weight[: chains.length + 1] + near[chains.entities]
    tokens[:, 1:] += scorer.steps.relation_table()[chains.relations]
    query, key_value = scorer.query(tokens[:, -1] + asked), scorer.key_value(tokens)
    mixed = scorer._attend(query, key_value)
    merged = scorer.merge(torch.cat([mixed, tokens[:, -1], asked, tokens[:, -1] * asked], dim=1))
    torch.testing.assert_close(scorer._net(chains, asked), scorer.out(merged)[:, 0], atol=5e-3, rtol=5e-3)


def parts_of(graph: KnowledgeGraph, words: WordEncoder, encoder: object) -> LearnedParts:
    return LearnedParts(
        {
            "neighbourhood": encoder,
            "intent": LearnedIntent(graph, words, width=16),
            "edge_scorer": LearnedEdgeScorer(graph, words, width=16, neighbourhood=encoder),  # type: ignore[arg-type]
            "chain_scorer": LearnedChainScorer(graph, words, width=16, neighbourhood=encoder),  # type: ignore[arg-type]
            "analyzer": EvenAnalyzer(),
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_held_once_and_fit_another_graph(
    kind: type[EgoGraphEncoder],
    graph: KnowledgeGraph,
    words: WordEncoder,
    toy_graph: KnowledgeGraph,
    tmp_path: Path,
) -> None:
    one = parts_of(graph, words, make(kind, graph, words, tmp_path))
    ids = [id(weight) for _, weight in one.named_parameters(remove_duplicate=False)]
    assert len(ids) == len(set(ids))
    assert one.trained_names() == set(one.state_dict())
    other = parts_of(toy_graph, words, make(kind, toy_graph, words, tmp_path, edges=5)).eval()
    move(one)
    other.load_state_dict(one.state_dict(), strict=True)
    encoder = other.neighbourhood
    assert isinstance(encoder, kind)
    assert encoder.rows(torch.arange(12)).dense().isfinite().all()
    bare = parts_of(graph, words, NoNeighbourhood())
    assert not [name for name in bare.state_dict() if "neighbourhood" in name or ".near" in name]


def test_fresh_rows_below_none_are_refused(graph: KnowledgeGraph, words: WordEncoder) -> None:
    with pytest.raises(ConfigError, match=r"edge_scorer\.fresh is -1"):
        LearnedEdgeScorer(graph, words, fresh=-1)
