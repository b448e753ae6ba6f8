"""Gold paths on any graph: sampled starts, single-ended shortest walks, and a balanced choice of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.bench.select import Caps, Pick, Picker, sequence_keys
from vispath_lit.data.bench.walks import BLOCK, Ints, Steps, Walks, shortest_walks
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track

PAPER = {2: 500, 3: 1200, 4: 300}
"""Questions of VisPath-Bench by number of hops (Table I)."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to make.

    Attributes:
        questions: in all, at most.
        hops: number of hops to its weight.
        starts: entities that are looked at, at most.
        walks: of each length from each start, at most; a seeded sample where there are more.
        repeat: whether a relation may come twice on a path.
    """

    questions: int = 2000
    hops: Mapping[int, int] = field(default_factory=lambda: dict(PAPER))
    starts: int = 8000
    walks: int = 200
    repeat: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("questions", "starts", "walks"):
            if getattr(self, name) < 1:
                raise ConfigError(f"bench {name} is {getattr(self, name)}; expected at least 1")
        weights = self.hops.values()
        if (
            not self.hops
            or min(weights) < 0
            or not sum(weights)
            or not 1 <= min(self.hops) <= max(self.hops) <= 6
        ):
            raise ConfigError(f"bench hops are {dict(self.hops)}; expected weights for 1 to 6 hops")

    def counts(self) -> dict[int, int]:
        """Questions wanted by number of hops, most hops first; they add up to `questions`."""
        total, left, weight = sum(self.hops.values()), self.questions, 0
        counts: dict[int, int] = {}
        for hops in sorted(self.hops, reverse=True):
            # Largest remainders would do as well; running totals need no second pass.
            weight += self.hops[hops]
            counts[hops] = round(self.questions * weight / total) - (self.questions - left)
            left -= counts[hops]
        return counts

    def as_dict(self) -> dict[str, object]:
        """Plain values, for the statistics."""
        return {**asdict(self), "hops": {str(h): w for h, w in sorted(self.hops.items())}}


def parse_hops(text: str) -> dict[int, int]:
    """Weights as in "2:500,3:1200,4:300".

    Raises:
        ConfigError: another form.
    """
    parts = [part.split(":") for part in text.split(",")]
    if not all(len(part) == 2 and all(n.strip().isdecimal() and len(n) < 9 for n in part) for part in parts):
        raise ConfigError(f"bench hops are {text!r}; expected weights such as 2:500,3:1200,4:300")
    return {int(hops): int(weight) for hops, weight in parts}


def gold_walks(graph: KnowledgeGraph, steps: Steps, starts: Ints, plan: BenchPlan) -> dict[int, Walks]:
    """By number of hops the gold paths from `starts`: one end at every step, and no shorter way forwards."""
    rng = np.random.default_rng([plan.seed, 1])
    depth = max(plan.hops)
    parts: dict[int, list[Walks]] = {hops: [] for hops in plan.hops}
    blocks = range(0, len(starts), BLOCK)
    for at in track(blocks, "looking for gold paths") if len(blocks) > 4 else blocks:
        some = starts[at : at + BLOCK]
        found = shortest_walks(graph, steps, some, depth, lambda walks: _thinned(walks, plan, rng))
        for hops, kept in parts.items():
            kept.append(found[hops - 1])
    return {hops: Walks.join(kept) for hops, kept in parts.items()}


def _thinned(walks: Walks, plan: BenchPlan, rng: np.random.Generator) -> Walks:
    """Without repeated relations, and at most `plan.walks` a start, in the order given."""
    if not plan.repeat:
        ordered = np.sort(walks.relations, axis=1)
        walks = walks.select((np.diff(ordered, axis=1) != 0).all(axis=1))
    chance = rng.random(len(walks))
    start = walks.entities[:, 0]
    order = np.lexsort((chance, start))
    new = np.r_[True, start[order][1:] != start[order][:-1]][: len(walks)]
    rank = np.arange(len(walks)) - np.maximum.accumulate(np.where(new, np.arange(len(walks)), 0))
    return walks.select(np.sort(order[rank < plan.walks]))


def choose(
    walks: Mapping[int, Walks], plan: BenchPlan, kinds: Mapping[int, Sequence[str]]
) -> dict[int, list[Pick]]:
    """Picks by number of hops, balanced over starts, last relations, relation sequences and answers."""
    size = min(plan.questions, sum(len(part) for part in walks.values()))
    picker = Picker(size, kinds, _caps(list(walks.values()), size), np.random.default_rng([plan.seed, 2]))
    chosen: dict[int, list[Pick]] = {}
    for hops, count in plan.counts().items():
        before = len(picker.picks)
        picker.take(walks[hops], count)
        chosen[hops] = picker.picks[before:]
    return chosen


def _caps(walks: Sequence[Walks], size: int) -> Caps:
    """Atlas's caps, wider where a graph has too few relations, answers or starts to keep them."""
    part = [w for w in walks if len(w)]
    last = len(np.unique(np.concatenate([w.relations[:, -1] for w in part])))
    answers = len(np.unique(np.concatenate([w.entities[:, -1] for w in part])))
    starts = len(np.unique(np.concatenate([w.entities[:, 0] for w in part])))
    sequences = sum(len(np.unique(sequence_keys(w))) for w in part)
    usual = Caps()
    return Caps(
        answer=max(usual.answer, 2 / answers),
        kind=1.0,
        relation=max(usual.relation, 2 / last),
        sequence=max(usual.sequence, 2 / sequences),
        start=max(usual.start, -(-2 * size // starts)),
    )


def allowed_relations(graph: KnowledgeGraph, skip: frozenset[str]) -> NDArray[np.bool_]:
    """`[R]`: the relations that a gold path may use."""
    return np.array([graph.relation_id(r) not in skip for r in range(graph.num_relations)], dtype=bool)
