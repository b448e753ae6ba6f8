"""Composed vectors of chains: each distinct prefix is composed once, its children cost one step each."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vispath_lit.models.texts.blocks import BLOCK, blockwise
from vispath_lit.models.texts.composers import ChainComposer
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.models.texts.tail_parts import TailParts


class ChainStates:
    """The recurrence of `ChainComposer` over batches of chains.

    Args:
        limit: bytes that remembered parts of entities may take; see `TailParts`.
    """

    def __init__(self, labels: LabelVectors, composer: ChainComposer, limit: int) -> None:
        self.labels = labels
        self.composer = composer
        with torch.no_grad():
            self._relation_parts = blockwise(composer.relation_part, labels.relations)
        self._tails = TailParts(labels, composer, limit)

    @torch.no_grad()
    def vectors(self, entities: Tensor, relations: Tensor) -> Tensor:
        """`[C, d]` unit vectors of chains with entities `[C, hops + 1]` and signed relations `[C, hops]`.

        Fast where chains with a common prefix are adjacent, as a search makes them.
        """
        if relations.shape[1] == 0:
            return blockwise(self.composer.read, self._begin(entities[:, 0]))
        vectors = torch.empty(len(entities), self.composer.dim)
        for low, states in self._blocks(entities, relations):
            vectors[low : low + BLOCK] = blockwise(self.composer.read, states)
        return vectors

    def _states(self, entities: Tensor, relations: Tensor) -> Tensor:
        """`[C, width + d]` states of chains."""
        if relations.shape[1] == 0:
            return self._begin(entities[:, 0])
        return torch.cat([states for _, states in self._blocks(entities, relations)])

    def _begin(self, starts: Tensor) -> Tensor:
        return blockwise(self.composer.begin, self.labels.entities(starts))

    def _blocks(self, entities: Tensor, relations: Tensor) -> Iterator[tuple[int, Tensor]]:
        """The states of `BLOCK` chains at a time, which stay in the processor's cache."""
        if len(entities) == 0:
            return
        prefix_e, prefix_r = entities[:, :-1], relations[:, :-1]
        fresh = torch.ones(len(entities), dtype=torch.bool)
        fresh[1:] = (prefix_e[1:] != prefix_e[:-1]).any(1) | (prefix_r[1:] != prefix_r[:-1]).any(1)
        parent = torch.cumsum(fresh, 0) - 1
        states = self._states(prefix_e[fresh], prefix_r[fresh])
        gates = blockwise(self.composer.recur, states)
        relation = relations[:, -1].contiguous()
        tails, tail = self._tails.rows(entities[:, -1].contiguous())
        for low in range(0, len(entities), BLOCK):
            rows = slice(low, low + BLOCK)
            parts = self._relation_parts[relation[rows]] + tails[tail[rows]]
            yield low, self.composer.step(states[parent[rows]], gates[parent[rows]], parts)
