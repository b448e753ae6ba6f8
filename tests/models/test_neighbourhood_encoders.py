"""What a neighbourhood encoder makes of an entity's surroundings."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from learned_worlds import WordEncoder
from neighbourhood_worlds import COUNT, HUB, KINDS, LONE, MakeGraph, crowded, make

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods.compgcn import CompGCNNeighbourhood, Composition
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.models.neighbourhoods.gatv2 import GATv2Neighbourhood
from vispath_lit.models.neighbourhoods.none import NoNeighbourhood


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return crowded(make_graph)


@pytest.fixture(scope="module")
def words() -> WordEncoder:
    return WordEncoder()


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
