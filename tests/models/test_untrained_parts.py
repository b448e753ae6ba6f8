from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, ring_triples, states_and_frontier
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.learned import LearnedDepthAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.judges.learned import LearnedJudge
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.ranking import best_first
from vispath_lit.models.residual import start_at_random
from vispath_lit.types import Analysis, Intents, Path, Paths, Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


@pytest.fixture(scope="module")
def encoder() -> WordEncoder:
    return WordEncoder()


@pytest.mark.parametrize("hops", [0, 1, 3])
def test_untrained_parts_give_the_fixed_scores(
    graph: KnowledgeGraph, encoder: WordEncoder, hops: int
) -> None:
    states, frontier = states_and_frontier(graph, hops)
    texts = PlainTexts(graph, encoder)
    fixed_intents = QuestionIntent(encoder)(states)
    intents = LearnedIntent(graph, encoder, width=16).eval()(states)
    torch.testing.assert_close(intents.vectors, fixed_intents.vectors)
    assert intents.texts == fixed_intents.texts
    rows = texts.edge_vectors(frontier.relation, frontier.tail)
    edge = LearnedEdgeScorer(graph, encoder, width=16).eval()(frontier, rows, intents)
    expected = FixedEdgeScorer()(frontier, rows, fixed_intents)
    torch.testing.assert_close(edge, expected, atol=1e-5, rtol=0)
    chains = states.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    chains = Paths(chains.entities, chains.relations, chains.state, chains.scores, torch.randn(len(chains)))
    rows = texts.chain_vectors(chains)
    objective = encoder.encode([f"objective {i}" for i in range(len(states))])
    mine = Intents(intents.vectors[frontier.edge_path], intents.question, intents.texts)
    chain = LearnedChainScorer(graph, encoder, width=16).eval()(chains, rows, objective, mine)
    torch.testing.assert_close(chain, FixedChainScorer()(chains, rows, objective, mine), atol=1e-5, rtol=0)


def test_untrained_ties_are_those_of_the_fixed_scorer(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    states, frontier = states_and_frontier(graph, 1)
    rows = PlainTexts(graph, encoder).edge_vectors(frontier.relation, frontier.tail)
    fixed = FixedEdgeScorer()(frontier, rows, QuestionIntent(encoder)(states))
    intents = LearnedIntent(graph, encoder, width=16).eval()(states)
    learned = LearnedEdgeScorer(graph, encoder, width=16).eval()(frontier, rows, intents)
    assert torch.equal(
        best_first(learned.detach(), frontier.edge_path), best_first(fixed, frontier.edge_path)
    )


def test_the_untrained_analyzer_is_its_base(encoder: WordEncoder) -> None:
    queries = [Query("nick1 then nick2"), Query("nick3")]
    analyses = LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3, width=16).eval().analyze(queries)
    for one, base in zip(analyses, EvenAnalyzer().analyze(queries), strict=True):
        assert one.depth == pytest.approx(base.depth, abs=1e-6)
        assert (one.sketch, one.head, one.expression) == (base.sketch, base.head, base.expression)
    assert LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3, width=16).analyze([]) == []


def test_a_base_that_goes_deeper_is_refused(encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match=r"d_max is 2.*gives 3"):
        LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=2, width=16).analyze([Query("nick1")])


@pytest.mark.parametrize("depth", [(0.2, 0.5, 0.3), (0.4, 0.4, 0.2), (0.0, 0.0, 1.0), (0.36, 0.32, 0.32)])
def test_the_untrained_judge_stops_where_the_depth_does(
    graph: KnowledgeGraph, encoder: WordEncoder, depth: tuple[float, ...]
) -> None:
    judge = LearnedJudge(graph, LearnedIntent(graph, encoder, width=16).eval(), width=8).eval()
    analysis = Analysis("it", "thing", "", depth)
    for hop in range(1, analysis.hops + 1):
        kept = [[Path(tuple(range(hop + 1)), (0,) * hop, 1.0)], []]
        found, nothing = judge.judge([Query("nick1"), Query("nick2")], [analysis] * 2, kept, hop)
        (expected, _) = DepthJudge(graph).judge([Query("nick1")] * 2, [analysis] * 2, kept, hop)
        assert (found.answerability >= 0.5) == (expected.answerability >= 0.5)
        assert replace(found, answerability=0.0) == replace(expected, answerability=0.0)
        assert nothing.answerability == 0
    assert judge.judge([Query("nick1")], [analysis], [[]], 1)[0].paths == ()
    with pytest.raises(ConfigError, match=r"QuestionIntent.*parts/judge=fixed"):
        LearnedJudge(graph, QuestionIntent(encoder))


def test_corrections_start_at_zero_or_as_any_other_layer(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    torch.manual_seed(0)
    intent = LearnedIntent(graph, encoder, width=16)
    parts = LearnedParts(
        {
            "intent": intent,
            "judge": LearnedJudge(graph, intent),
            "edge_scorer": LearnedEdgeScorer(graph, encoder, width=16),
            "chain_scorer": LearnedChainScorer(graph, encoder, width=16),
            "analyzer": LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3),
        }
    )
    before = {name: value.clone() for name, value in parts.state_dict().items()}
    zero = {name for name, value in before.items() if value.ndim == 2 and not value.any()}
    assert {name.split(".")[0] for name in zero} == parts_of(before), "each part has a correction"
    assert start_at_random(parts) == len(zero)
    after = parts.state_dict()
    changed = {name for name in after if not torch.equal(after[name], before[name])}
    assert zero <= changed
    assert {name.rsplit(".", 1)[0] for name in changed} == {name.rsplit(".", 1)[0] for name in zero}
    for name in zero:
        bound = after[name].shape[1] ** -0.5
        assert 0.5 * bound < after[name].abs().max() <= bound, "as torch starts a linear layer"
    states, _ = states_and_frontier(graph, 1)
    assert not torch.allclose(intent.eval()(states).vectors, QuestionIntent(encoder)(states).vectors)


def parts_of(state: dict[str, Tensor]) -> set[str]:
    return {name.split(".")[0] for name in state}
