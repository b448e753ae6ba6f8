from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, ring_questions, ring_triples
from PIL.Image import Image
from PIL.Image import new as new_image
from torch import Tensor, nn

from vispath_lit.errors import ConfigError
from vispath_lit.kg.distances import from_start
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.learned import LearnedDepthAnalyzer
from vispath_lit.models.backbones.none import NoBackbone
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer, parents
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer, places
from vispath_lit.models.features import GraphFeatures, entity_types
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.judges.learned import LearnedJudge
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.neighbourhoods.facts import CommonFacts
from vispath_lit.models.products import trained_dot
from vispath_lit.models.ranking import best_first, rank_in_run
from vispath_lit.models.residual import start_at_random
from vispath_lit.types import Analysis, Frontier, Intents, Path, Paths, Query, Rows, States

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


def states_and_frontier(graph: KnowledgeGraph, hops: int, questions: int = 5) -> tuple[States, Frontier]:
    """Walks some paths a question, `hops` long, and expands them."""
    asked = ring_questions(questions, seed=3)
    generator = torch.Generator().manual_seed(0)
    state = torch.arange(questions).repeat_interleave(3)
    paths = Paths.starts(torch.randint(0, 40, (len(state),), generator=generator), state)
    for _ in range(hops):
        frontier = expand(graph, paths)
        pick = torch.randint(0, len(frontier), (len(state),), generator=generator)
        pick = torch.searchsorted(frontier.edge_path, torch.arange(len(state))) + pick % 12
        paths = paths.extend(torch.arange(len(state)), frontier.relation[pick], frontier.tail[pick])
    queries = [Query(q.text) for q in asked]
    return States(queries, EvenAnalyzer().analyze(queries), paths), expand(graph, paths)


def disturb(module: nn.Module) -> None:
    """Gives every weight, the zero ones too, some value."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=generator))


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


class Brightness:
    """An image encoder: mean of the three colours."""

    dim = 3
    fingerprint = "brightness"

    def encode(self, images: Sequence[Image]) -> Tensor:
        means = [np.asarray(image, dtype=np.float32).mean((0, 1)) for image in images]
        return torch.nn.functional.normalize(torch.from_numpy(np.stack(means)) + 1, dim=1)


def test_an_intent_sees_its_own_picture_only(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, Brightness(), width=16, image_tokens=2)
    blind = LearnedIntent(graph, encoder, Brightness(), width=16)
    assert set(blind.state_dict()) < set(intent.state_dict())
    disturb(intent.eval())
    pictures = [new_image("RGB", (8, 6), colour) for colour in ("red", "blue")]
    paths = Paths.starts(torch.tensor([1, 1, 1]), torch.arange(3))
    analyses = EvenAnalyzer().analyze([Query("nick1")] * 3)

    def vectors(*images: Image | None) -> Tensor:
        found: Intents = intent(States([Query("nick1", image) for image in images], analyses, paths))
        return found.vectors

    red, blue, none = vectors(pictures[0], pictures[1], None)
    assert not torch.allclose(red, blue)
    assert not torch.allclose(red, none)
    torch.testing.assert_close(vectors(None, pictures[0], pictures[1]), torch.stack([none, red, blue]))
    with pytest.raises(ConfigError, match=r"intent\.image_tokens is 2"):
        LearnedIntent(graph, encoder, image_tokens=2)


class Cells(Brightness):
    """An image encoder with four cells of three colours."""

    def __init__(self) -> None:
        self.cells = FourCells()


class FourCells:
    dim, side, fingerprint = 12, 2, "four"

    def encode(self, images: Sequence[Image]) -> Tensor:
        small = [np.asarray(image.resize((2, 2)), dtype=np.float32).reshape(-1) + 1 for image in images]
        return torch.nn.functional.normalize(torch.from_numpy(np.stack(small)), dim=1)


def test_what_a_picture_tells_adds_to_edges_once_it_is_trusted(
    make_graph: MakeGraph, encoder: WordEncoder
) -> None:
    shared = [(head, relation, relation) for head in range(8) for relation in (4, 5)]
    graph = make_graph(40, 6, {*ring_triples(), *shared})
    facts = CommonFacts(graph, least=4)
    assert facts.dim == 2
    intent = LearnedIntent(graph, encoder, Cells(), neighbourhood=facts, width=16, image_tokens=2).eval()
    scorer = LearnedEdgeScorer(graph, encoder, width=16, neighbourhood=facts).eval()
    queries = [Query("nick1", new_image("RGB", (8, 6), "red")), Query("nick1")]
    paths = Paths.starts(torch.tensor([1, 2]), torch.arange(2))
    frontier = expand(graph, paths)
    texts = PlainTexts(graph, encoder).stages[0].edge_vectors(frontier.relation, frontier.tail)

    def logits() -> tuple[Intents, Tensor]:
        found: Intents = intent(States(queries, EvenAnalyzer().analyze(queries), paths))
        return found, scorer(frontier, texts, found)

    found, before = logits()
    assert found.relations is not None
    assert found.near is not None
    assert not found.relations.any()
    torch.testing.assert_close(before, FixedEdgeScorer()(frontier, texts, found))
    disturb(intent)
    found, _ = logits()
    assert found.relations is not None
    assert found.near is not None
    assert found.relations[0].any()
    assert not found.relations[1].any()  # no picture
    assert not found.near[1].any()
    blind = replace(found, relations=None, near=None)
    told = scorer(frontier, texts, found) - scorer(frontier, texts, blind)
    for edge in range(len(frontier)):
        path, relation, tail = int(frontier.edge_path[edge]), frontier.relation[edge], frontier.tail[edge]
        slow = found.relations[path, relation] + found.near[path] @ facts.encode(tail[None])[0]
        torch.testing.assert_close(told[edge], slow, atol=1e-4, rtol=1e-4)


class Glance(nn.Module):
    """A backbone that sees whether there is a picture."""

    dim = 4

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Parameter(torch.ones(4))

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        there = torch.tensor([[query.image is not None] for query in queries])
        return self.seen.expand(len(queries), 1, 4), there


def test_an_intent_reads_its_backbone_which_is_saved_once(
    graph: KnowledgeGraph, encoder: WordEncoder
) -> None:
    backbone = Glance()
    intent = LearnedIntent(graph, encoder, vlm=backbone, width=16)
    parts = LearnedParts({"intent": intent, "vlm": backbone})
    assert [name for name in parts.state_dict() if name.endswith("seen")] == ["vlm.seen"]
    disturb(parts.eval())
    assert intent.sees
    assert not LearnedIntent(graph, encoder, vlm=NoBackbone(), width=16).sees
    queries = [Query("nick1", new_image("RGB", (2, 2))), Query("nick1")]
    paths = Paths.starts(torch.tensor([1, 1]), torch.arange(2))
    found: Intents = intent(States(queries, EvenAnalyzer().analyze(queries), paths))
    assert not torch.allclose(found.vectors[0], found.vectors[1])
    found.vectors.sum().backward()  # type: ignore[no-untyped-call]
    assert backbone.seen.grad is not None
    assert backbone.seen.grad.abs().sum() > 0


def test_a_base_that_goes_deeper_is_refused(encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match=r"d_max is 2.*gives 3"):
        LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=2, width=16).analyze([Query("nick1")])


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


def test_the_intent_depends_on_the_path_and_on_each_word(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, width=16).eval()
    disturb(intent)
    paths = Paths(
        torch.tensor([[0, 1], [0, 1], [0, 4]]),
        torch.tensor([[0], [1], [0]]),
        torch.tensor([0, 0, 0]),
        torch.zeros(3),
    )
    analyses = EvenAnalyzer().analyze([Query("")])
    vectors = intent(States([Query("nick1 then nick2")], analyses, paths)).vectors
    assert not torch.allclose(vectors[0], vectors[1])
    swapped = intent(States([Query("nick2 then nick1")], analyses, paths)).vectors
    assert not torch.allclose(vectors[0], swapped[0])


def test_a_reading_shared_by_all_hops_changes_nothing(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    states, _ = states_and_frontier(graph, 1)
    intent = LearnedIntent(graph, encoder, width=16).eval()
    disturb(intent)
    longer = [Query("nick1 then nick2 then nick3 then nick4 then nick5"), *states.queries]
    reading = intent.read(longer).select(torch.arange(1, len(longer)))
    torch.testing.assert_close(intent(states, reading).vectors, intent(states).vectors)


def test_phrases_are_the_nearest_relation_labels(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    intent = LearnedIntent(graph, encoder, width=16)
    vectors = encoder.encode(["relation 4", "inverse of relation 2"])
    found = intent.phrases(vectors, top=2)
    assert found[0].split("; ")[0] == "relation 4"
    assert found[1].split("; ")[0] == "inverse of relation 2"
    assert len(found[0].split("; ")) == 2


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


def test_trained_dot_has_the_gradient_of_a_plain_product() -> None:
    texts = Rows(torch.randn(6, 5, dtype=torch.float64), torch.tensor([0, 3, 3, 5, 1, 2, 0]))
    group = torch.tensor([0, 0, 2, 2, 2, 1, 0])
    vectors = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)

    def product(v: Tensor) -> Tensor:
        return trained_dot(texts, group, v)

    torch.testing.assert_close(product(vectors), (texts.dense() * vectors[group]).sum(dim=1))
    assert torch.autograd.gradcheck(product, (vectors,))


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


def test_ranking_breaks_ties_by_row() -> None:
    order = best_first(torch.tensor([1.0, 2.0, 2.0, 5.0, 5.0]), torch.tensor([1, 1, 1, 0, 0]))
    assert order.tolist() == [3, 4, 1, 2, 0]
    assert rank_in_run(torch.tensor([0, 0, 1, 1, 1])).tolist() == [0, 1, 0, 1, 2]


def test_widths_that_heads_do_not_divide_are_refused(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match=r"intent\.width is 10"):
        LearnedIntent(graph, encoder, width=10, heads=4)
    with pytest.raises(ConfigError, match=r"chain_scorer\.width is 10"):
        LearnedChainScorer(graph, encoder, width=10, heads=4)


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


def test_a_fixed_intent_cannot_be_trained(graph: KnowledgeGraph, encoder: WordEncoder) -> None:
    with pytest.raises(ConfigError, match="QuestionIntent cannot be trained"):
        LearnedParts({"intent": QuestionIntent(encoder)})
