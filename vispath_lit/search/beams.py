"""The partial paths of the questions that are still on their way."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from vispath_lit.types import Paths


def starts(entities: Sequence[int]) -> Paths:
    """One path of length 0 a question."""
    return Paths.starts(torch.tensor(entities, dtype=torch.long), torch.arange(len(entities)))


def remaining(kept: Paths, going: Sequence[bool]) -> Paths:
    """The kept paths of the questions that go on, with those numbered anew from 0."""
    on = torch.tensor(going, dtype=torch.bool)
    number = torch.cumsum(on, 0) - 1
    mine = kept.select(torch.nonzero(on[kept.state])[:, 0])
    return Paths(mine.entities, mine.relations, number[mine.state], mine.scores, mine.log_likelihood)
