"""Walks that are too many to be looked at: cut after every hop to those nearest to what is asked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import TextStage
from vispath_lit.types import Path, Paths


class NearestWalks:
    """Walks by the cosines of their edges' and chains' texts (Eq. 5, Eq. 8) with an aim, a unit vector `[d]`.

    Args:
        stage: gives edges and chains their vectors.
        shortlist: walks that each cut leaves.
        hub_cap: edges of an entity and direction, shared fairly among its relations.
    """

    def __init__(self, graph: KnowledgeGraph, stage: TextStage, shortlist: int, hub_cap: int) -> None:
        self.graph = graph
        self.stage = stage
        self.shortlist = shortlist
        self.hub_cap = hub_cap

    def within(self, inside: NDArray[np.bool_], start: int, hops: int, aim: Tensor) -> list[Path]:
        """Walks of 1 to `hops` hops from `start` through entities that are `inside` (`[N]` bool)."""
        allowed = torch.from_numpy(inside)
        paths = Paths.of([Path((start,), ())])
        found: list[Path] = []
        for _ in range(hops):
            paths = self._longer(paths, allowed, aim)
            found += paths.records()
        return found

    def nearest(self, paths: Sequence[Path], aim: Tensor) -> list[Path]:
        """The `shortlist` paths nearest to the aim, best first, the earlier on a tie; cosines as scores."""
        scored: list[tuple[float, int, Path]] = []
        for length in {len(path.relations) for path in paths}:
            rows = [i for i, path in enumerate(paths) if len(path.relations) == length]
            cosines = self.stage.chain_vectors(Paths.of([paths[i] for i in rows])).dense() @ aim
            for i, cosine in zip(rows, cosines.tolist(), strict=True):
                scored.append((-cosine, i, Path(paths[i].entities, paths[i].relations, cosine)))
        return [path for _, _, path in sorted(scored, key=lambda one: one[:2])[: self.shortlist]]

    def one_hop(self, paths: Sequence[Path]) -> list[Path]:
        """The paths with each edge that leaves their end, the last step not walked back."""
        found: list[Path] = []
        for path in paths:
            walked = Paths.of([path])
            edges = expand(self.graph, walked, hub_cap=self.hub_cap, backtrack=False)
            found += walked.extend(edges.edge_path, edges.relation, edges.tail).records()
        return found

    def _longer(self, paths: Paths, allowed: Tensor, aim: Tensor) -> Paths:
        """Each path with each of its edges to an allowed entity, the `shortlist` nearest, best first."""
        edges = expand(self.graph, paths, hub_cap=self.hub_cap, backtrack=False)
        edges = edges.select(allowed[edges.tail].nonzero().flatten())
        if not len(edges):
            return paths.select(torch.zeros(0, dtype=torch.long))
        rows = self.stage.edge_vectors(edges.relation, edges.tail)
        near = _best((rows.vectors @ aim)[rows.index], 4 * self.shortlist)
        edges = edges.select(near.sort().values)
        longer = paths.extend(edges.edge_path, edges.relation, edges.tail)
        cosines = self.stage.chain_vectors(longer).dense() @ aim
        order = _best(cosines, self.shortlist)
        return longer.select(order, cosines[order])


def _best(values: Tensor, count: int) -> Tensor:
    """Positions of the highest values, best first, the earlier one on a tie."""
    return torch.sort(values, descending=True, stable=True).indices[:count]
