"""Parts of chains within a bound: whatever is remembered, a chain has the same bits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.models.texts import edge_table
from vispath_lit.models.texts.chain_states import ChainStates
from vispath_lit.models.texts.composers import ChainComposer
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.models.texts.tail_parts import TailParts

ENTITIES, DIM, WIDTH = 40, 64, 64  # Whole vector registers, as in use: ends of rows may round otherwise.
ROW = 2 * (3 * WIDTH + DIM)  # Bytes of one entity's part.
BOUNDS = [-1, 0, ROW - 1, ROW, 7 * ROW, ENTITIES * ROW, 1 << 30]


class Labels:
    """Seeded label vectors that count how often each entity was asked for."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        self.graph = SimpleNamespace(num_entities=ENTITIES)
        self.rows = torch.randn(ENTITIES, DIM, generator=generator)
        self.relations = torch.randn(8, DIM, generator=generator)
        self.asked = np.zeros(ENTITIES, dtype=int)

    def entities(self, entities: Tensor) -> Tensor:
        np.add.at(self.asked, entities.numpy(), 1)
        return self.rows[entities]


def composer() -> ChainComposer:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        made = ChainComposer(DIM, WIDTH)
        torch.nn.init.normal_(made.out.weight)
    return made.requires_grad_(False)


def tail_parts(labels: Labels, limit: int) -> TailParts:
    return TailParts(cast(LabelVectors, labels), composer(), limit)


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, ENTITIES - 1), max_size=12), max_size=8),
    st.sampled_from(BOUNDS),
)
def test_every_entity_has_its_part_under_any_bound(calls: list[list[int]], limit: int) -> None:
    labels = Labels()
    parts = tail_parts(labels, limit)
    for call in calls:
        entities = torch.tensor(call, dtype=torch.long)
        table, row = parts.rows(entities)
        expected = composer().tail_part(labels.rows[entities]).half()
        torch.testing.assert_close(table[row], expected, atol=2e-3, rtol=2e-3)
    assert parts._used <= parts.capacity <= max(0, limit // ROW)


@pytest.mark.parametrize("limit", BOUNDS)
def test_a_bound_decides_no_bit_of_a_chain(limit: int) -> None:
    generator = torch.Generator().manual_seed(2)
    entities = torch.randint(ENTITIES, (100, 4), generator=generator)
    relations = torch.randint(8, (100, 3), generator=generator)
    free = ChainStates(cast(LabelVectors, Labels()), composer(), 1 << 30).vectors(entities, relations)
    bound = ChainStates(cast(LabelVectors, Labels()), composer(), limit)
    for rows in (slice(0, 3), slice(3, 100), slice(0, 100)):
        assert torch.equal(bound.vectors(entities[rows], relations[rows]), free[rows])


def test_what_is_remembered_is_composed_once() -> None:
    labels = Labels()
    parts = tail_parts(labels, 5 * ROW)
    for _ in range(3):
        parts.rows(torch.tensor([1, 2, 2, 3]))  # Fits.
        parts.rows(torch.tensor([3, 7, 8, 9, 10]))  # Four more do not.
    assert labels.asked[[1, 2, 3]].tolist() == [1, 1, 1]
    assert labels.asked[[7, 8, 9, 10]].tolist() == [3, 3, 3, 3]
    parts.rows(torch.tensor([7, 8]))  # Two of them still do.
    parts.rows(torch.tensor([7, 8]))
    assert labels.asked[[7, 8]].tolist() == [4, 4]


@settings(deadline=None)
@given(st.lists(st.integers(0, 99), max_size=40), st.integers(100, 2000))
def test_distinct_places_are_those_of_a_sort(places: list[int], size: int) -> None:
    place = np.array(places, dtype=np.int64)
    found, index = edge_table._distinct(place, size)
    assert found.tolist() == sorted(set(places))
    assert found[index].tolist() == places
