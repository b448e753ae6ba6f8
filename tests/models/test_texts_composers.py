from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import gelu

from vispath_lit.models.texts.blocks import BLOCK, blockwise
from vispath_lit.models.texts.composers import ChainComposer, EdgeComposer

D, W = 6, 4


def unit(*shape: int) -> Tensor:
    generator = torch.Generator().manual_seed(len(shape))
    return torch.nn.functional.normalize(torch.randn(*shape, generator=generator), dim=-1)


def random_weights(model: torch.nn.Module) -> None:
    generator = torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data.copy_(torch.randn(parameter.shape, generator=generator))


def test_edge_formula() -> None:
    """normalise(S_r r + S_t t + C gelu(A r + B t)), one edge at a time."""
    composer = EdgeComposer(D, W)
    random_weights(composer)
    relation, tail = unit(3, D), unit(3, D).flip(0)
    found = composer(relation, tail)
    for i in range(3):
        parts = (
            composer.relation.weight @ relation[i] + composer.relation.bias + composer.tail.weight @ tail[i]
        )
        whole = composer.out.weight @ gelu(parts[:W]) + parts[W:]
        torch.testing.assert_close(found[i], whole / whole.norm())


def test_chain_formula() -> None:
    """The recurrence of the docstring, one chain and one hop at a time."""
    composer = ChainComposer(D, W)
    random_weights(composer)
    entities, relations = unit(2, 4, D), unit(2, 3, D)
    found = composer(entities, relations)
    for i in range(2):
        first = composer.start.weight @ entities[i, 0] + composer.start.bias
        h, v = first[:W].tanh(), first[W:]
        for hop in range(3):
            x = composer.relation.weight @ relations[i, hop] + composer.relation.bias
            x = x + composer.tail.weight @ entities[i, hop + 1]
            u = composer.gates.weight @ h + composer.gates.bias
            z = torch.sigmoid(x[:W] + u[:W])
            q = torch.sigmoid(x[W : 2 * W] + u[W : 2 * W])
            c = torch.tanh(x[2 * W : 3 * W] + q * u[2 * W :])
            h, v = (1 - z) * c + z * h, v + x[3 * W :]
            whole = composer.out.weight @ h + v
            torch.testing.assert_close(found[i, hop], whole / whole.norm())


def test_training_starts_at_the_mean_of_the_parts() -> None:
    edge, chain = EdgeComposer(D, W), ChainComposer(D, W)
    for bias in (edge.relation.bias, chain.relation.bias, chain.start.bias):
        bias.data.zero_()
    parts = unit(5, D)
    whole = parts[0] + parts[1]
    torch.testing.assert_close(edge(parts[:1], parts[1:2])[0], whole / whole.norm())
    whole = parts.sum(0)
    found = chain(parts[None, [0, 2, 4]], parts[None, [1, 3]])[0, -1]
    torch.testing.assert_close(found, whole / whole.norm())


def test_blocks_equal_the_whole() -> None:
    layer = torch.nn.Linear(5, 7)
    for count in (0, 1, BLOCK, BLOCK + 3):
        inputs = torch.randn(count, 5)
        torch.testing.assert_close(blockwise(layer, inputs), layer(inputs))


def test_a_row_has_the_same_bits_in_any_company() -> None:
    layer = torch.nn.Linear(384, 384)
    inputs = torch.randn(300, 384)
    together = blockwise(layer, inputs)
    for i in (0, 63, 64, 299):
        assert torch.equal(blockwise(layer, inputs[i : i + 1])[0], together[i])


def test_gradients_reach_every_parameter() -> None:
    edge, chain = EdgeComposer(D, W), ChainComposer(D, W)
    random_weights(edge)
    random_weights(chain)
    target = unit(3, D)
    loss = (edge(unit(3, D), target) * target.flip(0)).sum()
    loss = loss + (chain(unit(3, 3, D), unit(3, 2, D)) * target.flip(0)[:, None]).sum()
    loss.backward()
    for model in (edge, chain):
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert bool((parameter.grad != 0).any()), name
