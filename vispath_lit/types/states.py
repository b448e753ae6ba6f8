"""Where the search of many questions stands at one hop, and what its next step looks for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from vispath_lit.types.paths import Paths
from vispath_lit.types.questions import Analysis, Query


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """S questions at one hop, each with its kept partial paths.

    Attributes:
        queries: S queries.
        analyses: S analyses.
        paths: P partial paths; `paths.state` points into the S questions.
    """

    queries: Sequence[Query]
    analyses: Sequence[Analysis]
    paths: Paths

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, eq=False)
class Intents:
    """What the next step should look for (Eq. 4).

    Attributes:
        vectors: `[P, d]`, one intent a partial path.
        question: `[S, d]`, SBERT(Q) of each state.
        texts: S texts: the intent in words, empty where it is the question itself.
        hidden: `[P, width]`, what a learned intent was made from; None for others.
        relations: `[P, 2R]` logits of the next signed relation that a picture gives; None without one.
        near: `[P, k]`, the same for each number of the tail's neighbourhood.
    """

    vectors: Tensor
    question: Tensor
    texts: Sequence[str]
    hidden: Tensor | None = None
    relations: Tensor | None = None
    near: Tensor | None = None

    def of(self, paths: slice) -> Intents:
        """The intents of neighbouring partial paths; questions stay as they are."""

        def some(rows: Tensor | None) -> Tensor | None:
            return None if rows is None else rows[paths]

        return Intents(
            self.vectors[paths],
            self.question,
            self.texts,
            some(self.hidden),
            some(self.relations),
            some(self.near),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table of distinct vectors and who uses which: item i has `vectors[index[i]]`.

    Attributes:
        vectors: `[U, d]` float32, unit rows.
        index: `[n]` long into the table.
    """

    vectors: Tensor
    index: Tensor

    def dense(self) -> Tensor:
        """`[n, d]`: one vector an item."""
        return self.vectors[self.index]
