"""The numbers and options of Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from vispath_lit.errors import ConfigError

Trace = Literal["none", "kept", "full"]
DEEPEST = 16


@dataclass(frozen=True)
class SearchSettings:
    """Defaults are the paper's where it gives one; options beyond it are named so.

    Attributes:
        m1: edges kept a partial path (Eq. 5).
        m2: chains kept a question before the examination (Eq. 8).
        m3: paths kept a question and hop.
        d_max: the depth budget D_max in hops.
        inverse: also walk edges backwards (beyond the paper).
        relation_cap: edges of one signed relation among the m1, at most; None is no cap (beyond the paper).
        backtrack: allow the step straight back over the same stored triple.
        hub_cap: edges looked at an endpoint and direction, at most; None is all (beyond the paper).
        delta: the margin of Eq. 3; it grows by 0.01 a rank.
        validation: graph-aware validation (Eq. 2-3); off starts from rank 1.
        chain_pruning: Eq. 8 and the examination; off keeps paths by their last edge's score.
        evidence_checking: Eq. 10-11; off walks to the full depth budget, then answers.
        gate: the answerability from which eta = 1.
        depth_floor: Eq. 11 stops at D^ at the earliest; off, a judge that weighs the depth itself may stop
            before (beyond the paper).
        distinct_relations: fill the m3 slots with distinct relation sequences first (beyond the paper).
        trace: what each hop records: nothing, its kept paths, or all discovered paths and chains too.
    """

    m1: int = 30
    m2: int = 30
    m3: int = 3
    d_max: int = 4
    inverse: bool = True
    relation_cap: int | None = None
    backtrack: bool = True
    hub_cap: int | None = None
    delta: float = 0.05
    validation: bool = True
    chain_pruning: bool = True
    evidence_checking: bool = True
    gate: float = 0.5
    depth_floor: bool = True
    distinct_relations: bool = False
    trace: Trace = "kept"

    def __post_init__(self) -> None:
        for key in ("m1", "m2", "m3", "relation_cap", "hub_cap"):
            value = getattr(self, key)
            optional = key in ("relation_cap", "hub_cap")
            if not (optional and value is None) and not (isinstance(value, int) and value >= 1):
                raise ConfigError(f"search.{key} is {value!r}; it must be a whole number of at least 1")
        if not (isinstance(self.d_max, int) and 1 <= self.d_max <= DEEPEST):
            raise ConfigError(
                f"search.d_max is {self.d_max!r}; it must be a whole number from 1 to {DEEPEST}"
            )
        if self.m3 > self.m2:
            raise ConfigError(f"search.m3 is {self.m3}; it must be at most search.m2, which is {self.m2}")
        if not 0 < self.delta < 2:
            raise ConfigError(f"search.delta is {self.delta}; it must be between 0 and 2 (Eq. 3)")
        if not 0 < self.gate <= 1:
            raise ConfigError(f"search.gate is {self.gate}; it must be above 0 and at most 1")
        if self.trace not in get_args(Trace):
            raise ConfigError(f"search.trace is {self.trace!r}; it must be one of {list(get_args(Trace))}")
