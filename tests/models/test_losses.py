from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.models.losses import (
    depth_cross_entropy,
    listwise_cross_entropy,
    listwise_hits,
    segment_logsumexp,
)


def slow_loss(logits: list[float], weights: list[float], segment: list[int]) -> float:
    """The mean over lists with a positive of -log sum_i w_i softmax_i, item by item."""
    losses = []
    for one in sorted(set(segment)):
        rows = [i for i, s in enumerate(segment) if s == one]
        total = sum(math.exp(logits[i]) for i in rows)
        accepted = sum(weights[i] * math.exp(logits[i]) / total for i in rows)
        if accepted > 0:
            losses.append(-math.log(accepted))
    return sum(losses) / len(losses) if losses else 0.0


@st.composite
def lists(draw: st.DrawFn) -> tuple[list[float], list[float], list[int]]:
    n = draw(st.integers(1, 12))
    logits = draw(st.lists(st.floats(-8, 8), min_size=n, max_size=n))
    weights = draw(st.lists(st.sampled_from([0.0, 0.0, 0.25, 1.0]), min_size=n, max_size=n))
    return logits, weights, draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))


@given(lists())
def test_listwise_loss_equals_the_slow_one(case: tuple[list[float], list[float], list[int]]) -> None:
    logits, weights, segment = case
    fast = listwise_cross_entropy(
        torch.tensor(logits, dtype=torch.float64),
        torch.tensor(weights, dtype=torch.float64),
        torch.tensor(segment),
        5,
    )
    assert fast.item() == pytest.approx(slow_loss(logits, weights, segment), abs=1e-9)


def test_listwise_gradient_is_exact_and_free_of_nan() -> None:
    logits = torch.tensor([0.3, -1.0, 2.0, 0.5, 4.0], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([1.0, 0.0, 0.0, 0.5, 0.0], dtype=torch.float64)
    segment = torch.tensor([0, 0, 1, 1, 3])

    def loss(x: Tensor) -> Tensor:
        return listwise_cross_entropy(x, weights, segment, 4)

    assert torch.autograd.gradcheck(loss, (logits,))
    loss(logits).backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert logits.grad[4] == 0  # its list has no positive
    assert torch.isfinite(logits.grad).all()


def test_no_list_with_a_positive_gives_zero_with_a_gradient() -> None:
    logits = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = listwise_cross_entropy(logits, torch.zeros(2), torch.tensor([0, 1]), 2)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.abs().sum() == 0


def test_large_logits_do_not_overflow() -> None:
    loss = listwise_cross_entropy(
        torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0]), torch.tensor([0, 0]), 1
    )
    assert loss.item() == pytest.approx(2e4)


def test_logsumexp_of_an_empty_segment_is_minus_infinity() -> None:
    found = segment_logsumexp(torch.tensor([0.0, 0.0]), torch.tensor([1, 1]), 3)
    assert found.tolist() == [-math.inf, pytest.approx(math.log(2)), -math.inf]


def test_hits_give_a_tie_to_the_earlier_item() -> None:
    logits = torch.tensor([1.0, 1.0, 0.0, 3.0, 3.0, 9.0])
    weights = torch.tensor([0.0, 1.0, 0.0, 0.5, 0.0, 0.0])
    hits, of = listwise_hits(logits, weights, torch.tensor([0, 0, 0, 1, 1, 2]), 3)
    assert (int(hits), int(of)) == (1, 2)


def test_depth_counts_deeper_questions_as_the_deepest() -> None:
    logits = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    expected = torch.nn.functional.cross_entropy(logits, torch.tensor([1, 1]))
    assert torch.equal(depth_cross_entropy(logits, torch.tensor([2, 7])), expected)
