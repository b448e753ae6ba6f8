"""When to stop, and what to answer from (Eq. 9-11)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Analysis, Candidate, Evidence, HopTrace, Path, Provenance, Query


@dataclass(slots=True, eq=False)
class Walk:
    """One question on its way through the loop.

    Attributes:
        analysis: its `hops` is D^, already bounded by D_max.
        visited: every path kept at any hop.
        evidence: z*, the latest evidence to answer from.
        likeliest: the most answerable evidence of all; z* where none passed the gate but a judge had some
            belief.
        stopped: whether Eq. 11 was met.
        texts: distinct edge texts of its hops so far, where the text provider bounds them.
    """

    query: Query
    analysis: Analysis
    candidates: Sequence[Candidate]
    visited: list[Path] = field(default_factory=list)
    evidence: Evidence | None = None
    likeliest: Evidence | None = None
    stopped: bool = False
    texts: int = 0
    trace: list[HopTrace] = field(default_factory=list)

    def take(self, evidence: Evidence, settings: SearchSettings) -> None:
        """Eq. 10-11: answerable evidence is kept, the latest one wins; at D^ or beyond it ends the search.

        Without the floor D^ the first answerable evidence ends it. Without evidence checking nothing is asked
        of the evidence, and nothing stops before D_max.
        """
        if not settings.evidence_checking:
            self.evidence = evidence
        elif evidence.answerability >= settings.gate:
            self.evidence = evidence
            self.stopped = not settings.depth_floor or evidence.hop >= self.analysis.hops
        elif evidence.answerability > (self.likeliest.answerability if self.likeliest else 0.0):
            self.likeliest = evidence

    def end(self) -> None:
        """The search is over: where no evidence passed the gate, the likeliest is the fallback."""
        self.evidence = self.evidence or self.likeliest

    def provenance(self, selected: Provenance, settings: SearchSettings) -> Provenance:
        """The selector's "stopped" is a fallback before D^, and terminal where nothing is checked."""
        if selected != "stopped" or self.stopped:
            return selected
        return "fallback" if settings.evidence_checking else "terminal"

    def deciding(self, settings: SearchSettings) -> tuple[Path, ...]:
        """The kept paths behind the answer, best first: those of z*, else the best ever kept."""
        if self.evidence is not None:
            return self.evidence.paths
        return tuple(sorted(self.visited, key=lambda path: -path.score)[: settings.m3])


def bound_depth(query: Query, analysis: Analysis, d_max: int) -> Analysis:
    """D^ = min(D^, D_max), where D^ is the granted depth if a protocol grants one; always at least 1."""
    hops = min(max(query.depth if query.depth is not None else analysis.hops, 1), d_max)
    if query.depth is None and hops == analysis.hops:
        return analysis
    return replace(analysis, depth=tuple(float(i + 1 == hops) for i in range(d_max)))
