"""Every cut of the search: the best rows of each group, by one text stage or by several."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from vispath_lit.models.ranking import best_first, rank_in_run
from vispath_lit.protocols import TextStage


def top_per_group(
    scores: Tensor, group: Tensor, limit: int, kind: Tensor | None = None, cap: int | None = None
) -> Tensor:
    """Rows of the `limit` best of each group, sorted by group, then best first.

    Args:
        scores: `[n]`.
        group: `[n]` long.
        kind: `[n]` long; with `cap`, a group takes at most `cap` rows of one kind (its best).
    """
    rows = best_first(scores, group)
    if kind is not None and cap is not None:
        pair = group[rows] * (int(kind.max()) + 1 if len(kind) else 1) + kind[rows]
        by_pair = torch.sort(pair, stable=True).indices
        place = torch.empty_like(by_pair)
        place[by_pair] = rank_in_run(pair[by_pair])
        rows = rows[place < cap]
    return rows[rank_in_run(group[rows]) < limit]


def staged_top(
    stages: Sequence[TextStage],
    score: Callable[[TextStage, Tensor], Tensor],
    group: Tensor,
    width: int,
    limit: int,
    kind: Tensor | None = None,
    cap: int | None = None,
    afford: Callable[[TextStage, Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The best rows of each group, where early stages only make a shortlist and the last one decides.

    Args:
        stages: the last one has `keep` None; each earlier one passes on `keep * width` rows a group.
        score: logits of the rows `[m]` that a stage is asked about, in their order.
        group: `[n]` long, non-decreasing.
        width: the beam width that `keep` multiplies.
        limit: rows kept a group.
        kind, cap: see `top_per_group`; the cap of a shortlist is `keep` times as wide.
        afford: which `[m]` of a stage's shortlist to pass on, given the rows by group: first those that this
            stage would keep if it decided, then the others, each best first.

    Returns:
        Positions of the kept rows among the scored ones, sorted by group, then best first; the rows that
        the last stage scored, ascending; their logits.
    """
    rows = torch.arange(len(group))
    for stage in stages[:-1]:
        keep = 1 if stage.keep is None else stage.keep
        wide = None if cap is None else keep * cap
        logits = score(stage, rows)
        of_kind = None if kind is None else kind[rows]
        short = top_per_group(logits, group[rows], keep * width, of_kind, wide)
        if afford is not None:
            other = torch.ones(len(rows), dtype=torch.long)
            other[top_per_group(logits, group[rows], limit, of_kind, cap)] = 0
            short = short[torch.sort(group[rows[short]] * 2 + other[short], stable=True).indices]
            short = short[afford(stage, rows[short])]
        rows = rows[short].sort().values
    logits = score(stages[-1], rows).detach().to("cpu", torch.float32)
    best = top_per_group(logits, group[rows], limit, None if kind is None else kind[rows], cap)
    return best, rows, logits
