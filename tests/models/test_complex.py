"""ComplEx against numpy's own complex numbers, and what it learns of a small graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_geometric.nn.kge import ComplEx

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.complex import ComplexSettings, compose, compose_inverse, train_complex

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
SMALL = ComplexSettings(dim=16, epochs=60, batch=16, negatives=16, lr=0.2)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(1, 6), st.integers(0, 2**31 - 1))
def test_both_products_are_the_real_part_of_the_trilinear_one(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    h, r, t = rng.normal(size=(3, dim)) + 1j * rng.normal(size=(3, dim))
    score = float((h * r * t.conj()).sum().real)
    head, relation, tail = (torch.from_numpy(np.concatenate([v.real, v.imag])) for v in (h, r, t))
    assert float(compose(head, relation) @ tail) == pytest.approx(score, abs=1e-9)
    assert float(compose_inverse(tail, relation) @ head) == pytest.approx(score, abs=1e-9)


def test_the_product_is_the_librarys_score() -> None:
    model = ComplEx(7, 3, 4)
    head, relation, tail = torch.tensor([0, 5]), torch.tensor([2, 1]), torch.tensor([6, 3])
    heads, tails = (torch.cat([model.node_emb(e), model.node_emb_im(e)], dim=1) for e in (head, tail))
    relations = torch.cat([model.rel_emb(relation), model.rel_emb_im(relation)], dim=1)
    mine = (compose(heads, relations) * tails).sum(dim=1)
    torch.testing.assert_close(mine, model(head, relation, tail))


def ring(make_graph: MakeGraph) -> KnowledgeGraph:
    """Relation 0 goes one step around a ring of 12, relation 1 three steps: both are far from symmetric."""
    steps = [(0, 1), (1, 3)]
    return make_graph(12, 2, [(i, r, (i + step) % 12) for i in range(12) for r, step in steps])


def test_vectors_are_finite_the_same_for_a_seed_and_other_for_another(make_graph: MakeGraph) -> None:
    graph = ring(make_graph)
    before = torch.random.get_rng_state()
    first = train_complex(graph, SMALL, seed=3)
    assert first.shape == (12, 32)
    assert first.isfinite().all()
    assert not first.requires_grad
    assert torch.equal(first, train_complex(graph, SMALL, seed=3))
    assert not torch.equal(first, train_complex(graph, SMALL, seed=4))
    assert torch.equal(before, torch.random.get_rng_state()), "the run's own random state is left alone"


def test_training_moves_what_is_linked_in_the_same_way_together(make_graph: MakeGraph) -> None:
    """Entities 0 to 3 have the same tails, 4 to 7 others: a vector is nearest to one of its own kind."""
    triples = [(i, 0, 8 + i // 4) for i in range(8)] + [(i, 1, 10 + i // 4) for i in range(8)]
    graph = make_graph(12, 2, triples)
    vectors = torch.nn.functional.normalize(train_complex(graph, SMALL, seed=0)[:8], dim=1)
    cosines = (vectors @ vectors.T).fill_diagonal_(-1)
    assert ((cosines.argmax(dim=1) < 4) == (torch.arange(8) < 4)).all()


def test_odd_graphs(make_graph: MakeGraph) -> None:
    loop = make_graph(1, 1, [(0, 0, 0)])  # every drawn entity is the true one
    assert train_complex(loop, SMALL, seed=0).isfinite().all()
    alone = make_graph(5, 1, [(0, 0, 1)])
    assert train_complex(alone, SMALL, seed=0).isfinite().all()


@pytest.mark.parametrize(
    "wrong", [{"dim": 0}, {"batch": 0}, {"negatives": 0}, {"epochs": -1}, {"lr": float("nan")}]
)
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        ComplexSettings(**wrong)  # type: ignore[arg-type]
