"""Which walks a split takes where only some relation sequences are wanted."""

from __future__ import annotations

from collections import Counter

import numpy as np

from vispath_lit.data.bench.select import Caps, Picker, Wanted
from vispath_lit.data.bench.walks import Walks

COMMON, RARE, OTHER = (0, 1), (2, 3), (4, 5)


def picker() -> Picker:
    free = Caps(answer=1.0, kind=1.0, relation=1.0, sequence=1.0, start=20)
    return Picker(20, dict.fromkeys(range(20), ("flag",)), free, np.random.default_rng(0))


def walks() -> Walks:
    """Ten of one sequence, two of another, three of a third."""
    relations = np.array([COMMON] * 10 + [RARE] * 2 + [OTHER] * 3)
    starts = np.arange(len(relations))
    return Walks(entities=np.stack([starts, starts + 50, starts + 100], axis=1), relations=relations)


def test_each_wanted_sequence_comes_once_before_any_comes_twice() -> None:
    chosen = picker()
    wanted: Wanted = {COMMON: {"flag"}, RARE: {"flag"}}
    assert chosen.take(walks(), 5, wanted, most=1) == 2
    assert Counter(pick.relations for pick in chosen.picks) == {COMMON: 1, RARE: 1}
    assert chosen.take(walks(), 2, wanted, most=2) == 2
    assert Counter(pick.relations for pick in chosen.picks) == {COMMON: 2, RARE: 2}
    assert chosen.take(walks(), 5, wanted, most=3) == 1, "of the rare one no walk is left"
    assert len({pick.entities for pick in chosen.picks}) == 5


def test_what_is_not_wanted_or_has_no_wanted_picture_is_passed_over() -> None:
    chosen = picker()
    wanted: Wanted = {OTHER: {"flag"}, COMMON: {"outline"}}
    assert chosen.take(walks(), 20, wanted, most=9) == 3
    assert {pick.relations for pick in chosen.picks} == {OTHER}
