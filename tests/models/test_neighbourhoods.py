"""The neighbourhood encoders: their vectors, their table, and what the scorers make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, ring_triples
from torch import Tensor, nn

from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.neighbourhoods import table
from vispath_lit.models.neighbourhoods.compgcn import CompGCNNeighbourhood, Composition
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.models.neighbourhoods.gatv2 import GATv2Neighbourhood
from vispath_lit.models.neighbourhoods.none import NoNeighbourhood
from vispath_lit.models.neighbourhoods.table import VectorTable
from vispath_lit.types import Frontier, Intents, Paths

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
LONE, HUB, COUNT = 59, 40, 60
KINDS = (GATv2Neighbourhood, CompGCNNeighbourhood)


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    """The ring, a hub that everything on it leads to, and an entity without edges."""
    return make_graph(COUNT, 7, [*ring_triples(), *((h, 6, HUB) for h in range(40)), (50, 6, 51)])


@pytest.fixture(scope="module")
def words() -> WordEncoder:
    return WordEncoder()


def make(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, folder: Path, **values: Any
) -> EgoGraphEncoder:
    torch.manual_seed(0)
    given: dict[str, Any] = {
        "dim": 8,
        "width": 16,
        "edges": 10,
        **({"heads": 4} if kind is GATv2Neighbourhood else {}),
    }
    return kind(graph, words, folder, **{**given, **values}).eval()


def move(module: nn.Module, seed: int = 1) -> None:
    """A step of training, as far as the weights can tell."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.add_(0.2 * torch.randn(weight.shape, generator=generator))


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_holds_what_is_encoded_afresh(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path)
    asked = torch.tensor([LONE, HUB, 3, 3, 0])
    for lazily in (False, True):
        encoder._whole = not lazily
        for _ in range(2):
            rows = encoder.rows(asked)
            assert rows.vectors.shape == (COUNT, 8)
            torch.testing.assert_close(rows.dense().float(), encoder.encode(asked), atol=2e-3, rtol=2e-3)
            move(encoder)
    assert not list(tmp_path.iterdir())  # weights that may still move are worth no file


@pytest.mark.parametrize("kind", KINDS)
def test_an_entity_has_one_vector_in_any_company(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path)
    everyone = encoder.encode(torch.arange(COUNT))
    assert everyone.isfinite().all()
    for entity in (0, 17, HUB, LONE):
        torch.testing.assert_close(encoder.encode(torch.tensor([entity]))[0], everyone[entity])
    order = torch.randperm(COUNT)
    torch.testing.assert_close(encoder.encode(order), everyone[order])
    assert encoder.encode(torch.zeros(0, dtype=torch.long)).shape == (0, 8)
    # Labels of the centre are not part of it: two entities without edges are alike.
    torch.testing.assert_close(everyone[LONE], everyone[58])


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_edges_does_not_matter_but_their_relation_does(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path)
    nodes, centres, relations = torch.randn(6, 16), torch.randn(3, 16), torch.randn(4, 16)
    edges = torch.stack([torch.randint(0, 6, (20,)), torch.arange(2).repeat_interleave(10)])
    relation = torch.randint(0, 4, (20,))
    mixed = encoder.mix(nodes, centres, relations, edges, relation)
    order = torch.cat([torch.randperm(10), torch.randperm(10) + 10])
    again = encoder.mix(nodes, centres, relations, edges[:, order], relation[order])
    torch.testing.assert_close(mixed, again, atol=1e-5, rtol=1e-5)
    other = encoder.mix(nodes, centres, relations, edges, (relation + 1) % 4)
    assert not torch.allclose(mixed[:2], other[:2], atol=1e-3)
    torch.testing.assert_close(mixed[2], other[2])  # it hears nothing


def test_composition_pools_products() -> None:
    nodes, told = torch.randn(5, 3), torch.randn(7, 3)
    edges = torch.tensor([[0, 1, 2, 2, 4, 3, 0], [0, 0, 0, 2, 2, 2, 2]])
    heard = Composition()(nodes, torch.zeros(4, 3), edges, told)
    for centre in range(4):
        mine = [nodes[edges[0, i]] * told[i] for i in range(7) if edges[1, i] == centre]
        pooled = torch.stack(mine) if mine else torch.zeros(1, 3)
        expected = torch.cat([pooled.mean(dim=0), pooled.amax(dim=0), pooled.amin(dim=0)])
        torch.testing.assert_close(heard[centre], expected)


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


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_weights_are_encoded_once_into_a_file(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    trained = make(kind, graph, words, tmp_path)
    move(trained)
    first, second = (make(kind, graph, words, tmp_path) for _ in range(2))
    for encoder in (first, second):
        encoder.load_state_dict(trained.state_dict())
    expected = first.rows(torch.arange(COUNT)).dense()
    (file,) = (tmp_path / "neighbourhoods").glob("*.npy")
    second.encode = None  # type: ignore[method-assign, assignment]
    assert torch.equal(second.rows(torch.arange(COUNT)).dense(), expected)
    file.write_bytes(file.read_bytes()[:200])  # a damaged one is made again
    third = make(kind, graph, words, tmp_path)
    third.load_state_dict(trained.state_dict())
    assert torch.equal(third.rows(torch.arange(COUNT)).dense(), expected)
    move(third)  # other weights have another file, or none while they move
    assert not torch.equal(third.rows(torch.arange(COUNT)).dense(), expected)
    other = make(kind, graph, words, tmp_path, seed=1)
    other.load_state_dict(trained.state_dict())
    other.rows(torch.arange(2))
    assert len(list((tmp_path / "neighbourhoods").glob("*.npy"))) == 2


def test_in_training_rows_grow_old_for_some_steps(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(CompGCNNeighbourhood, graph, words, tmp_path, refresh=2).train()
    asked, seen = torch.tensor([1, 2]), []
    for step in range(5):
        encoder.refresh(step)
        seen.append(encoder.rows(asked).dense().clone())
        assert encoder.training
        move(encoder, step)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[1], seen[2])
    assert not torch.equal(seen[3], seen[4])
    assert not torch.equal(encoder.eval().rows(asked).dense(), seen[4])


def test_rows_of_older_weights_are_taken_up_by_a_resumed_run(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder, other = (make(CompGCNNeighbourhood, graph, words, tmp_path, refresh=9).train() for _ in range(2))
    assert encoder.remembered() == {}
    encoder.refresh(0)
    old = encoder.rows(torch.tensor([1, 2])).dense().clone()
    move(encoder)
    state = encoder.remembered()
    assert state["entities"].tolist() == [1, 2]
    other.load_state_dict(encoder.state_dict())
    other.remember(state)
    other.refresh(1)
    assert torch.equal(other.rows(torch.tensor([1, 2])).dense(), old)
    assert torch.equal(other.rows(torch.tensor([5])).dense(), encoder.rows(torch.tensor([5])).dense())
    other.eval().rows(torch.tensor([1]))
    assert other.train().remembered() == {}, "what a validation encoded is not used in training"
    assert not torch.equal(other.rows(torch.tensor([1, 2])).dense(), old)
    damaged = [
        {"entities": torch.tensor([COUNT]), "vectors": torch.zeros(1, 8).half()},
        {"entities": torch.tensor([-1]), "vectors": torch.zeros(1, 8).half()},
        {"entities": torch.tensor([1]), "vectors": torch.full((1, 8), torch.nan).half()},
        {"entities": torch.tensor([1]), "vectors": torch.zeros(1, 7).half()},
        {"entities": torch.tensor([1]), "vectors": torch.zeros(1, 8).bfloat16()},
        {"entities": torch.tensor([1])},
    ]
    for one in damaged:
        with pytest.raises(CheckpointError, match="transfer=true"):
            other.remember(one)


def test_a_table_encodes_each_row_once_and_only_what_is_asked() -> None:
    seen: list[int] = []

    def encode(entities: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, Any]:
        seen.extend(entities.tolist())
        return np.stack([entities, entities], axis=1) % 1000  # float16 holds such exactly

    vectors = VectorTable(encode, 5 * table.CHUNK, 2)
    some = np.array([7, 3, 7, 2000])
    assert vectors.some(some)[some].tolist() == [[7, 7], [3, 3], [7, 7], [0, 0]]
    assert seen == [3, 7, 2000]
    vectors.some(np.array([3, 4]))
    assert seen == [3, 7, 2000, 4]
    vectors.forget("others")
    vectors.some(np.array([3]))
    vectors.forget("others")
    vectors.some(np.array([3]))
    assert seen == [3, 7, 2000, 4, 3]
    assert (vectors.all(None)[:, 0] == np.arange(5 * table.CHUNK) % 1000).all()
    assert len(seen) == 5 + 5 * table.CHUNK
    vectors.all(None)
    vectors.some(some)
    assert len(seen) == 5 + 5 * table.CHUNK


def test_no_neighbourhood_costs_nothing() -> None:
    none = NoNeighbourhood()
    assert none.dim == 0
    assert none.rows(torch.tensor([3, 4])).dense().shape == (2, 0)
    assert none.encode(torch.tensor([3, 4])).shape == (2, 0)
    none.refresh(0)


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision_reaches_every_weight(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        vectors = encoder.encode(torch.arange(20))
    (vectors.float() ** 2).sum().backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in encoder.parameters())


def test_values_out_of_range_are_refused(graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"neighbourhood\.width is 10.*heads, 16"):
        GATv2Neighbourhood(graph, words, tmp_path, width=10)
    with pytest.raises(ConfigError, match=r"neighbourhood\.edges is 0"):
        CompGCNNeighbourhood(graph, words, tmp_path, edges=0)
    with pytest.raises(ConfigError, match=r"neighbourhood\.refresh is 0"):
        CompGCNNeighbourhood(graph, words, tmp_path, refresh=0)
    with pytest.raises(ConfigError, match=r"edge_scorer\.fresh is -1"):
        LearnedEdgeScorer(graph, words, fresh=-1)
