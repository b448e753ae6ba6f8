"""Directional distance: whether an entity is one step from a path's start, and which way."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Frontier

DISTANCES = 4  # further away, one step forwards, one step backwards, both


def from_start(graph: KnowledgeGraph, frontier: Frontier) -> Tensor:
    """`[E]` long: 1 where the path's start has a triple to the tail, plus 2 where the tail has one to it.

    The neighbours of each start are marked and the tails looked up, so that a frontier is read once. Edges
    whose paths begin at one entity share the marking where they are adjacent.
    """
    tail = frontier.tail.cpu().numpy()
    start = frontier.paths.entities[:, 0].cpu().numpy()
    ends = np.cumsum(np.bincount(frontier.edge_path.cpu().numpy(), minlength=len(start)))
    last = np.flatnonzero(np.diff(start, append=-1))
    marks = np.zeros(graph.num_entities, dtype=np.uint8)  # takes memory where neighbours lie
    found = np.empty(len(tail), dtype=np.uint8)
    low = 0
    for entity, high in zip(start[last].tolist(), ends[last].tolist(), strict=True):
        if high > low:
            outer = graph.out_tail[graph.out_indptr[entity] : graph.out_indptr[entity + 1]]
            inner = graph.in_tail[graph.in_indptr[entity] : graph.in_indptr[entity + 1]]
            marks[outer] = 1
            marks[inner] |= 2
            found[low:high] = marks[tail[low:high]]
            marks[outer] = 0
            marks[inner] = 0
        low = high
    return torch.from_numpy(found.astype(np.int64))
