"""Within a search each question is read once; nothing else changes, and nothing is remembered afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext

import pytest
import torch
from learned_worlds import PlainTexts, WordEncoder, ring_questions, ring_triples
from torch import Tensor, nn

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.learned import LearnedIntent, Reading
from vispath_lit.models.intents.once import once
from vispath_lit.models.judges.learned import LearnedJudge
from vispath_lit.models.remembered import made_once, remembering
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.protocols import Backbone
from vispath_lit.search import loop
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Analysis, Path, Prediction, Query

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(40, 6, ring_triples())


class WordyAnalyzer:
    """As many hops as the question has steps."""

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        hops = [query.text.count("then") + 1 for query in queries]
        return [Analysis("it", "it", "", tuple(0.8 if i == n else 0.1 for i in range(1, 4))) for n in hops]


class CountedIntent(LearnedIntent):
    """Knows how many questions it read."""

    count = 0

    def read(self, queries: Sequence[Query]) -> Reading:
        type(self).count += len(queries)
        return super().read(queries)


class CountedBackbone(nn.Module):
    """A backbone of one number a question, which knows how many questions it read."""

    dim = 1
    count = 0

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        type(self).count += len(queries)
        lengths = torch.tensor([[[float(len(query.text))]] for query in queries])
        return lengths.reshape(-1, 1, 1), torch.ones(len(queries), 1, dtype=torch.bool)


def system(graph: KnowledgeGraph, threads: int = 1, vlm: Backbone | None = None) -> VisPath:
    """Learned parts with weights that tell questions and paths apart; some stop before others."""
    encoder = WordEncoder()
    torch.manual_seed(0)
    intent = CountedIntent(graph, encoder, vlm=vlm, width=16)
    judge = LearnedJudge(graph, intent, width=16)
    edges, chains = LearnedEdgeScorer(graph, encoder, width=16), LearnedChainScorer(graph, encoder, width=16)
    parts: list[nn.Module] = [intent, judge, edges, chains]
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in nn.ModuleList(parts).eval().parameters():
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    return VisPath(
        graph=graph,
        text_encoder=encoder,
        texts=PlainTexts(graph, encoder),
        analyzer=WordyAnalyzer(),
        grounder=TopicGrounder(),
        intent=intent,
        edge_scorer=edges,
        chain_scorer=chains,
        examiner=NoExaminer(),
        judge=judge,
        selector=BestPathSelector(graph),
        search=SearchSettings(d_max=3, depth_floor=False, trace="full"),
        batch_size=16,
        threads=threads,
    )


def asked(graph: KnowledgeGraph, count: int = 24) -> list[Query]:
    questions = ring_questions(count, seed=5)
    return [Query(q.text, topic=graph.entity_index(q.topic_entity or "")) for q in questions]


def walked(prediction: Prediction) -> list[Path]:
    return [path for hop in prediction.trace for path in (*hop.discovered, *hop.chains, *hop.kept)]


@pytest.mark.parametrize("threads", [1, 2])
def test_reading_once_changes_no_answer(
    graph: KnowledgeGraph, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries, searches = asked(graph), system(graph, threads)
    monkeypatch.setattr(CountedIntent, "count", 0)
    found = searches.answer(queries)
    assert CountedIntent.count == len(queries)
    monkeypatch.setattr(loop, "remembering", nullcontext)
    again = searches.answer(queries)
    assert CountedIntent.count > 3 * len(queries), "each hop and each judgement reads"
    assert len({len(one.trace) for one in found}) > 1, "some questions stop before others"
    for mine, other in zip(found, again, strict=True):
        assert (mine.answer, mine.provenance, mine.ranked) == (other.answer, other.provenance, other.ranked)
        ways = [[(path.entities, path.relations) for path in walked(one)] for one in (mine, other)]
        assert ways[0] == ways[1]
        # Rows of a larger batch, padded to a longer question: sums of the same numbers in another order.
        scores = [[path.score for path in walked(one)] for one in (mine, other)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_forwards_of_a_backbone_are_those_that_it_made(
    graph: KnowledgeGraph, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries = [*asked(graph), Query("nothing tells where this one starts")]
    searches = system(graph, threads, CountedBackbone())
    monkeypatch.setattr(CountedBackbone, "count", 0)
    costs = [one.cost for one in searches.answer(queries)]
    assert [cost.vlm_forwards for cost in costs] == [1] * (len(queries) - 1) + [0]
    assert CountedBackbone.count == len(queries) - 1
    assert all(cost.llm_calls == cost.vlm_calls == 0 < cost.seconds for cost in costs)
    monkeypatch.setattr(loop, "remembering", nullcontext)
    found = searches.answer(queries)
    assert sum(one.cost.vlm_forwards for one in found) == CountedBackbone.count - (len(queries) - 1)
    assert all(one.cost.vlm_forwards > len(one.trace) for one in found[:-1]), "were it not read once"


def test_a_search_forgets_when_it_ends(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, searches = asked(graph, 4), system(graph)
    before = searches.answer(queries)
    intent = searches.searcher.intent
    assert isinstance(intent, LearnedIntent)
    with torch.no_grad():
        intent.ask.add_(3 * torch.randn(intent.ask.shape, generator=torch.Generator().manual_seed(2)))
        for weight in intent.reader.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(3)))
    after = searches.answer(queries)
    assert [walked(one) for one in before] != [walked(one) for one in after]


class Numbers:
    """A reading that knows which queries were read, and in which call."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows

    def select(self, rows: Tensor) -> Numbers:
        return Numbers(self.rows[rows])


def test_queries_are_known_by_identity_and_readers_apart() -> None:
    one, two, twin = Query("one"), Query("two"), Query("one")
    calls: list[list[str]] = []

    def read(queries: Sequence[Query]) -> Numbers:
        calls.append([query.text for query in queries])
        return Numbers(torch.arange(len(queries)) + 10 * len(calls))

    first, second = object(), object()
    with remembering():
        assert once(first, read, [one, two]).rows.tolist() == [10, 11]
        assert once(first, read, [two]).rows.tolist() == [11]
        assert once(first, read, [two, one, two]).rows.tolist() == [11, 10, 11]
        assert once(first, read, []).rows.tolist() == []
        assert once(second, read, [two]).rows.tolist() == [20]
        assert once(first, read, [twin]).rows.tolist() == [30], "equal words, another question"
        with remembering():
            assert once(first, read, [twin]).rows.tolist() == [40], "a search within a search is its own"
        assert once(first, read, [twin]).rows.tolist() == [30]
        with pytest.raises(RuntimeError), remembering():
            raise RuntimeError
        assert once(first, read, [twin]).rows.tolist() == [30]
    assert once(first, read, [twin]).rows.tolist() == [50], "outside of a search nothing is remembered"
    assert len(calls) == 5


def test_tables_are_made_once_for_each_kind_of_gradient() -> None:
    calls: list[bool] = []

    def make() -> Tensor:
        calls.append(torch.is_grad_enabled())
        return weight * 2

    weight = torch.ones(3, requires_grad=True)
    with remembering():
        first = made_once(weight, "double", make)
        assert made_once(weight, "double", make) is first
        with torch.no_grad():
            assert not made_once(weight, "double", make).requires_grad
            with torch.autocast("cpu", torch.bfloat16):
                made_once(weight, "double", make)
        assert made_once(weight, "double", make) is first
        (first.sum() + made_once(weight, "double", make).sum()).backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.tolist() == [4.0, 4.0, 4.0], "both uses count"
    assert calls == [True, False, False]
    made_once(weight, "double", make).sum().backward()  # type: ignore[no-untyped-call]
    assert len(calls) == 4


def test_the_tables_of_a_step_are_those_of_its_weights(graph: KnowledgeGraph) -> None:
    steps = StepEmbedding(GraphFeatures(graph, WordEncoder()), 8)
    tables = [steps.relation_table, steps.type_table]
    with remembering():
        before = [table() for table in tables]
        assert all(table() is one for table, one in zip(tables, before, strict=True))
    with torch.no_grad():
        for weight in steps.parameters():
            weight.add_(1.0)
    with remembering():
        for table, one in zip(tables, before, strict=True):
            assert not torch.allclose(table(), one)
