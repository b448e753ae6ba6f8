"""The size of each split, and what is kept out of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.atlas.questions.starts import POOLS, share
from vispath_lit.data.bench.select import Caps, sequence_keys
from vispath_lit.data.bench.walks import Walks
from vispath_lit.kg.store import KnowledgeGraph

HELD_OUT_RELATIONS = (
    "demonym",
    "independence_from",
    "highest_volcano",
    "crystal_structure",
)
"""Relations, in either direction, that only test_relation asks for."""

HELD_OUT_SEQUENCES = 12
"""Percent of the relation sequences that only test_composition asks for."""

SPLITS = (
    *("train", "val", "test", "test_composition", "test_relation", "test_wording", "test_cue"),
    *("val_wording", "train_wide"),
)
"""Seeds are numbered by place: a new split comes last."""

TRAINING = ("train", "train_wide")
"""The splits of training starts; the second has questions in many more forms and frames."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to make.

    Attributes:
        hops: split to number of hops to number of questions, without the cue questions.
        pairs: split to number of pairs of cue questions.
        wording: split to number of its questions that come in free paraphrases, too.
        caps: split to caps; splits not named have the usual ones.
        train_views: most pictures of one start and kind that training questions share.
    """

    hops: Mapping[str, Mapping[int, int]] = field(
        default_factory=lambda: {
            "train": {2: 4000, 3: 5800, 4: 2200},
            "train_wide": {2: 2600, 3: 7600, 4: 3800},
            "val": {2: 270, 3: 500, 4: 126},
            "test": {2: 500, 3: 1200, 4: 300},
            "test_composition": {2: 60, 3: 200, 4: 60},
            "test_relation": {2: 80, 3: 130, 4: 30},
        }
    )
    pairs: Mapping[str, int] = field(
        default_factory=lambda: {"train": 800, "train_wide": 1200, "val": 52, "test_cue": 212}
    )
    wording: Mapping[str, int] = field(default_factory=lambda: {"test": 300, "val": 200})
    caps: Mapping[str, Caps] = field(
        default_factory=lambda: {
            "train": Caps(answer=0.01, kind=0.2, relation=0.06, sequence=0.006, start=24),
            "train_wide": Caps(answer=0.01, kind=0.2, relation=0.06, sequence=0.006, start=30),
            "test_relation": Caps(relation=0.34, sequence=0.06),
        }
    )
    train_views: int = 3
    seed: int = 20261130

    def scaled(self, factor: float) -> Plan:
        """The same plan with fewer questions, for quick trials."""
        hops = {s: {h: max(4, round(n * factor)) for h, n in by.items()} for s, by in self.hops.items()}
        pairs = {s: max(8, round(n * factor)) for s, n in self.pairs.items()}
        wording = {s: max(8, round(n * factor)) for s, n in self.wording.items()}
        return Plan(hops, pairs, wording, self.caps, self.train_views, self.seed)

    def as_dict(self) -> dict[str, object]:
        """Sizes, caps and what is held out as plain values, for the statistics."""
        return {
            "hops": {s: {str(h): n for h, n in by.items()} for s, by in self.hops.items()},
            "pairs": dict(self.pairs),
            "wording": dict(self.wording),
            "caps": {split: asdict(self.caps.get(split, Caps())) for split in self.hops},
            "train_views": self.train_views,
            "seed": self.seed,
            "held_out_relations": list(HELD_OUT_RELATIONS),
            "held_out_sequences_percent": HELD_OUT_SEQUENCES,
            "pools_percent": dict(POOLS),
        }

    def size(self, split: str) -> int:
        """Questions of a split without its cue questions."""
        return sum(self.hops[split].values())


@dataclass(frozen=True, slots=True)
class HoldOut:
    """Tells walks that training may see from those kept for a test of generalisation."""

    relations: NDArray[np.int64]
    names: tuple[str, ...]
    seed: int

    @classmethod
    def of(cls, graph: KnowledgeGraph, seed: int) -> HoldOut:
        """The hold-outs on this graph."""
        names = tuple(graph.relation_id(r) for r in range(graph.num_relations))
        held = [r for r, name in enumerate(names) if name in HELD_OUT_RELATIONS]
        return cls(np.array(held, dtype=np.int64), names, seed)

    def new_relation(self, walks: Walks) -> NDArray[np.bool_]:
        """`[W]`: walks with a relation that is kept out."""
        return np.asarray(np.isin(walks.relations, self.relations).any(axis=1))

    def new_sequence(self, walks: Walks) -> NDArray[np.bool_]:
        """`[W]`: walks whose whole relation sequence is kept out, decided by a hash of its ids."""
        keys, first, inverse = np.unique(sequence_keys(walks), return_index=True, return_inverse=True)
        held = np.zeros(len(keys), dtype=bool)
        for at, row in enumerate(first.tolist()):
            held[at] = self.sequence_is_new(tuple(walks.relations[row].tolist()))
        return held[inverse]

    def sequence_is_new(self, relations: tuple[int, ...]) -> bool:
        """Whether one relation sequence is kept out."""
        key = ">".join(self.names[r] for r in relations)
        return share(key, self.seed) < HELD_OUT_SEQUENCES
