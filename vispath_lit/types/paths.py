"""Walks through the graph, and the edges that may extend them.

A *signed relation* is an integer in `[0, 2R)`: `r < R` walks a stored triple forwards, `r >= R` walks
a triple of relation `r - R` backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Path:
    """One walk `(e_0, r_1, e_1, ..., r_d, e_d)` with its chain score.

    Attributes:
        entities: d + 1 entity indices.
        relations: d signed relations.
    """

    entities: tuple[int, ...]
    relations: tuple[int, ...]
    score: float = 0.0

    @property
    def end(self) -> int:
        return self.entities[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """P partial paths of equal length d.

    Attributes:
        entities: `[P, d + 1]` long.
        relations: `[P, d]` long, signed.
        state: `[P]` long, the question (state) of each path; non-decreasing.
        scores: `[P]` float, the score that kept the path (0 for a start).
        log_likelihood: `[P]` float, the sum over its steps of the log-softmax of the edge logit among the
            question's scored edges of that hop; None where nobody counted.
    """

    entities: Tensor
    relations: Tensor
    state: Tensor
    scores: Tensor
    log_likelihood: Tensor | None = None

    def __len__(self) -> int:
        return int(self.state.shape[0])

    @property
    def length(self) -> int:
        """Hops walked so far, d."""
        return int(self.relations.shape[1])

    @property
    def ends(self) -> Tensor:
        """`[P]` endpoint of each path."""
        return self.entities[:, -1]

    @classmethod
    def starts(cls, entities: Tensor, state: Tensor) -> Paths:
        """Paths of length 0 from `[P]` start entities."""
        return cls(
            entities[:, None],
            entities.new_zeros((len(entities), 0)),
            state,
            torch.zeros(len(entities)),
            torch.zeros(len(entities)),
        )

    @classmethod
    def of(cls, records: Sequence[Path], state: Tensor | None = None) -> Paths:
        """One or more records of equal length as a batch; without `state` (`[P]`) all are one question's."""
        return cls(
            torch.tensor([path.entities for path in records]),
            torch.tensor([path.relations for path in records], dtype=torch.long),
            torch.zeros(len(records), dtype=torch.long) if state is None else state,
            torch.tensor([path.score for path in records]),
        )

    def select(self, rows: Tensor, scores: Tensor | None = None) -> Paths:
        """The paths at `rows` (`[C]` long), in that order, with new scores where given."""
        kept = self.scores[rows] if scores is None else scores
        likelihood = None if self.log_likelihood is None else self.log_likelihood[rows]
        return Paths(self.entities[rows], self.relations[rows], self.state[rows], kept, likelihood)

    def extend(self, parent: Tensor, relation: Tensor, tail: Tensor) -> Paths:
        """Eq. 6: path `parent[c]` with one more step `(relation[c], tail[c])`; keeps the parents' values."""
        return Paths(
            torch.cat([self.entities[parent], tail[:, None]], dim=1),
            torch.cat([self.relations[parent], relation[:, None]], dim=1),
            self.state[parent],
            self.scores[parent],
            None if self.log_likelihood is None else self.log_likelihood[parent],
        )

    def records(self) -> list[Path]:
        """The same paths as plain records."""
        # Through numpy, whose tolist() is many times as fast.
        columns = (self.entities, self.relations, self.scores.detach())
        entities, relations, scores = (column.cpu().numpy().tolist() for column in columns)
        return [Path(tuple(e), tuple(r), s) for e, r, s in zip(entities, relations, scores, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """E candidate edges that leave the endpoints of P partial paths.

    Attributes:
        paths: the P partial paths.
        edge_path: `[E]` long, the path that an edge would extend; non-decreasing.
        relation: `[E]` long, signed.
        tail: `[E]` long.
    """

    paths: Paths
    edge_path: Tensor
    relation: Tensor
    tail: Tensor

    def __len__(self) -> int:
        return int(self.tail.shape[0])

    def select(self, rows: Tensor) -> Frontier:
        """The edges at `rows` (`[n]` long), in that order."""
        return Frontier(self.paths, self.edge_path[rows], self.relation[rows], self.tail[rows])
