"""What one hop of the search did, as tensors for the next step and as records for reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from vispath_lit.search.pruning import by_state
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Evidence, HopTrace, Intents, Path, Paths


@dataclass(frozen=True, slots=True, eq=False)
class Hop:
    """What one hop did for S questions.

    Attributes:
        intents: one row a partial path.
        edges: `[S]` long, the edges on each question's frontier before Eq. 5's cut.
        texts: `[S]` long, the distinct edge texts that count against a bound on them.
        discovered: P_cand; scores are edge logits.
        chains: at most M2 a question, best first.
        kept: at most M3 a question, best first; the next hop's partial paths.
    """

    intents: Intents
    edges: Tensor
    texts: Tensor
    discovered: Paths
    chains: Paths
    kept: Paths


def traces(
    step: Hop, kept: Sequence[Sequence[Path]], evidence: Sequence[Evidence | None], settings: SearchSettings
) -> list[HopTrace]:
    """What a hop did, a record a question; as much of it as `settings.trace` asks for."""
    states = len(kept)
    if settings.trace == "none":
        return []
    edges = step.edges.tolist()
    nothing: list[tuple[Path, ...]] = [()] * states
    full = settings.trace == "full"
    discovered = by_state(step.discovered, states) if full else nothing
    chains = by_state(step.chains, states) if full else nothing
    return [
        HopTrace(
            intent=step.intents.texts[i],
            edges=edges[i],
            discovered=discovered[i],
            chains=chains[i],
            kept=tuple(kept[i]),
            answerability=0.0 if judged is None else judged.answerability,
        )
        for i, judged in enumerate(evidence)
    ]
