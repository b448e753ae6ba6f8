"""Which gold paths become questions: a balanced sample under caps, in one seeded order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.bench.walks import Ints, Walks

Wanted = Mapping[tuple[int, ...], Collection[str]]


@dataclass(frozen=True, slots=True)
class Caps:
    """Largest shares of a split, and largest counts.

    Attributes:
        answer: share of questions with the same answer.
        kind: share of questions with the same kind of picture.
        relation: share of questions that end with the same relation.
        sequence: share of questions with the same relation sequence.
        start: questions with the same start.
    """

    answer: float = 0.02
    kind: float = 0.2
    relation: float = 0.08
    sequence: float = 0.02
    start: int = 12


@dataclass(frozen=True, slots=True)
class Pick:
    """One chosen walk with the kind of picture that names its start."""

    entities: tuple[int, ...]
    relations: tuple[int, ...]
    kind: str


@dataclass(slots=True)
class Picker:
    """Fills one split; the counts run on over its numbers of hops.

    Attributes:
        size: questions the split will have, which the shares refer to.
        kinds: the kinds of picture of each start.
    """

    size: int
    kinds: Mapping[int, Sequence[str]]
    caps: Caps
    rng: np.random.Generator
    picks: list[Pick] = field(default_factory=list)
    _answer: Counter[int] = field(default_factory=Counter)
    _kind: Counter[str] = field(default_factory=Counter)
    _relation: Counter[int] = field(default_factory=Counter)
    _sequence: Counter[tuple[int, ...]] = field(default_factory=Counter)
    _start: Counter[int] = field(default_factory=Counter)
    _taken: set[tuple[int, tuple[int, ...]]] = field(default_factory=set)

    def take(self, walks: Walks, count: int, wanted: Wanted | None = None, most: int = 1) -> int:
        """Adds up to `count` of the walks, rare starts, sequences and answers first; returns how many.

        Args:
            wanted: relation sequence to kinds of picture; all others are passed over.
            most: questions with the same wanted sequence, in place of the cap on sequences.
        """
        taken = 0
        cap = max(2, self.caps.sequence * self.size) if wanted is None else most
        if wanted is not None:
            walks = walks.select(np.array([tuple(r) in wanted for r in walks.relations.tolist()], dtype=bool))
        for row in balanced_order(walks, self.rng).tolist():
            if taken == count:
                break
            entities = tuple(walks.entities[row].tolist())
            relations = tuple(walks.relations[row].tolist())
            kind = self._room(entities, relations, cap, None if wanted is None else wanted[relations])
            if kind is not None and (entities[0], relations) not in self._taken:
                self._count(entities, relations, kind)
                self.picks.append(Pick(entities, relations, kind))
                taken += 1
        return taken

    def _room(
        self,
        entities: tuple[int, ...],
        relations: tuple[int, ...],
        most: float,
        wanted: Collection[str] | None,
    ) -> str | None:
        """The least used kind of picture of the start, or None where a cap is reached."""
        caps, size = self.caps, self.size
        full = (
            self._answer[entities[-1]] >= max(1, int(caps.answer * size))
            or self._relation[relations[-1]] >= caps.relation * size
            or self._sequence[relations] >= most
            or self._start[entities[0]] >= caps.start
        )
        kinds = [k for k in self.kinds[entities[0]] if wanted is None or k in wanted]
        if full or not kinds:
            return None
        kind = min(kinds, key=lambda k: self._kind[k])
        return None if self._kind[kind] + 1 > caps.kind * size else kind

    def _count(self, entities: tuple[int, ...], relations: tuple[int, ...], kind: str) -> None:
        self._answer[entities[-1]] += 1
        self._kind[kind] += 1
        self._relation[relations[-1]] += 1
        self._sequence[relations] += 1
        self._start[entities[0]] += 1
        self._taken.add((entities[0], relations))


def balanced_order(walks: Walks, rng: np.random.Generator) -> Ints:
    """A random order in which walks of common starts, sequences and answers come later.

    Weighted sampling without replacement (Efraimidis and Spirakis): ascending Exp(1) / weight, with weight
    1 / (n_start * sqrt(n_sequence * n_answer)).
    """
    if not len(walks):
        return np.zeros(0, dtype=np.int64)
    start = _frequency(walks.entities[:, 0])
    sequence = _frequency(sequence_keys(walks))
    answer = _frequency(walks.entities[:, -1])
    cost = start * np.sqrt(sequence * answer)
    return np.argsort(rng.exponential(size=len(walks)) * cost, kind="stable")


def sequence_keys(walks: Walks) -> Ints:
    """`[W]`: one integer a relation sequence (of equally many steps each), in the order of sequences."""
    keys = np.zeros(len(walks), dtype=np.int64)
    base = int(walks.relations.max(initial=0)) + 1
    for column in walks.relations.T:
        if int(keys.max(initial=0)) >= np.iinfo(np.int64).max // base:  # One more step may have no room.
            keys = np.unique(keys, return_inverse=True)[1]
        keys = keys * base + column
    return keys


def _frequency(values: NDArray[np.int64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return counts[inverse].astype(np.float64)
