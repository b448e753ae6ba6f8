"""Composed vectors of chains: each distinct prefix is composed once, its children cost one step each."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vispath_lit.models.texts.blocks import blockwise
from vispath_lit.models.texts.composers import ChainComposer
from vispath_lit.models.texts.labels import LabelVectors


class ChainStates:
    """The recurrence of `ChainComposer` over batches of chains.

    Args:
        limit: bytes that remembered parts of entities may take; beyond it they are composed on each call.
    """

    def __init__(self, labels: LabelVectors, composer: ChainComposer, limit: int) -> None:
        self.labels = labels
        self.composer = composer
        with torch.no_grad():
            self._relation_parts = blockwise(composer.relation_part, labels.relations)
        shape = (labels.graph.num_entities, self._relation_parts.shape[1])
        self._remember = shape[0] * shape[1] * 2 <= limit
        # Zeros take no memory until they are written.
        self._tail_parts = np.zeros(shape if self._remember else (0, shape[1]), dtype=np.float16)
        self._known = np.zeros(shape[0] if self._remember else 0, dtype=bool)

    @torch.no_grad()
    def vectors(self, entities: Tensor, relations: Tensor) -> Tensor:
        """`[C, d]` unit vectors of chains with entities `[C, hops + 1]` and signed relations `[C, hops]`.

        Fast where chains with a common prefix are adjacent, as a search makes them.
        """
        return blockwise(self.composer.read, self._states(entities, relations))

    def _states(self, entities: Tensor, relations: Tensor) -> Tensor:
        if relations.shape[1] == 0:
            return blockwise(self.composer.begin, self.labels.entities(entities[:, 0]))
        before_e, before_r = entities[:, :-1], relations[:, :-1]
        fresh = torch.ones(len(entities), dtype=torch.bool)
        fresh[1:] = (before_e[1:] != before_e[:-1]).any(1) | (before_r[1:] != before_r[:-1]).any(1)
        parent = torch.cumsum(fresh, 0) - 1
        states = self._states(before_e[fresh], before_r[fresh])
        gates = blockwise(self.composer.recur, states)
        parts = self._relation_parts[relations[:, -1]] + self._entity_parts(entities[:, -1])
        return self.composer.step(states[parent], gates[parent], parts)

    def _entity_parts(self, entities: Tensor) -> Tensor:
        """`[n, parts]` of `[n]` tails."""
        if not self._remember:
            return blockwise(self.composer.tail_part, self.labels.entities(entities))
        rows = entities.numpy()
        if not self._known[rows].all():
            missing = np.unique(rows[~self._known[rows]])
            fresh = blockwise(self.composer.tail_part, self.labels.entities(torch.from_numpy(missing)))
            self._tail_parts[missing] = fresh.numpy().astype(np.float16)
            self._known[missing] = True
        return torch.from_numpy(self._tail_parts[rows]).float()
