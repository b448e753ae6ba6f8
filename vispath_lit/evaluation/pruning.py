"""Where a gold path was lost: the first cut of the search that none of a question's gold paths passed.

Places, in the order of the search: `start` (no path leaves the gold start), then at hop k `edges@k` (cut
by Eq. 5), `chains@k` (cut by Eq. 8), `beam@k` (cut by the examination or M3), `stopped@k` (kept, but the
search ended after hop k, too early); `kept` where a whole gold path was kept at its own length, and
`untraced` where a system tells nothing about its search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from vispath_lit.types import Path, Prediction

GoldWalk = tuple[tuple[int, ...], tuple[int, ...]]
"""Entities and signed relations of a gold path; -1 stands for what the graph does not hold."""

CUTS = ("edges", "chains", "beam", "stopped")


def lost_at(prediction: Prediction, gold: Sequence[GoldWalk]) -> str:
    """The furthest place that a gold path reached, see above. `gold` is not empty."""
    if not prediction.trace:
        return "untraced"
    return max((_place(prediction, walk) for walk in gold), key=lambda place: place[0])[1]


def _place(prediction: Prediction, gold: GoldWalk) -> tuple[float, str]:
    """(how far, its name) for one gold path."""
    entities, relations = gold
    begins = {candidate.entity for candidate in prediction.candidates[:1]}
    begins |= {path.entities[0] for path in prediction.trace[0].discovered}
    if entities[0] not in begins:
        return 0.0, "start"
    for hop, trace in enumerate(prediction.trace[: len(relations)], start=1):
        prefix = entities[: hop + 1], relations[:hop]
        stages = zip(CUTS, (trace.discovered, trace.chains, trace.kept), strict=False)
        for stage, (cut, paths) in enumerate(stages):
            if not _among(prefix, paths):
                return hop + stage / 4, f"{cut}@{hop}"
    walked = len(prediction.trace)
    if walked < len(relations):
        return walked + 3 / 4, f"stopped@{walked}"
    return float("inf"), "kept"


def _among(walk: GoldWalk, paths: Iterable[Path]) -> bool:
    return any((path.entities, path.relations) == walk for path in paths)


def pruning_table(places: Iterable[str]) -> dict[str, object]:
    """How often each place was the last: counts that sum to the number of questions with a gold path."""
    counts = Counter(places)
    hops = sorted({int(place.split("@")[1]) for place in counts if "@" in place})
    return {
        "questions": counts.total(),
        **{place: counts[place] for place in ("start", "kept", "untraced")},
        "hops": {str(hop): {cut: counts[f"{cut}@{hop}"] for cut in CUTS} for hop in hops},
    }
