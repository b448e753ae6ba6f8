"""Where gold is lost: one hand-made trace for each place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from vispath_lit.evaluation.pruning import GoldWalk, lost_at, pruning_table
from vispath_lit.types import Candidate, HopTrace, Path, Prediction

GOLD: GoldWalk = ((0, 1, 2), (5, 6))
FIRST, WHOLE = Path((0, 1), (5,), -2.0), Path((0, 1, 2), (5, 6), -3.0)
ASIDE, FURTHER = Path((0, 9), (5,), -1.0), Path((0, 9, 2), (5, 6), -1.0)


def hop(discovered: Sequence[Path], chains: Sequence[Path], kept: Sequence[Path]) -> HopTrace:
    return HopTrace("", 10, tuple(discovered), tuple(chains), tuple(kept), 0.5)


def predict(*trace: HopTrace, start: int = 0) -> Prediction:
    return Prediction("x", None, "stopped", candidates=(Candidate(start, -1.0, "name"),), trace=trace)


FULL = hop([ASIDE, FIRST], [ASIDE, FIRST], [ASIDE, FIRST])


@pytest.mark.parametrize(
    ("prediction", "place"),
    [
        (Prediction("x", None, "stopped"), "untraced"),
        (predict(hop([Path((7, 1), (5,))], [], []), start=7), "start"),
        (predict(hop([], [], [])), "edges@1"),
        (predict(hop([ASIDE], [ASIDE], [ASIDE])), "edges@1"),
        (predict(hop([ASIDE, FIRST], [ASIDE], [ASIDE])), "chains@1"),
        (predict(hop([ASIDE, FIRST], [ASIDE, FIRST], [ASIDE])), "beam@1"),
        (predict(FULL), "stopped@1"),
        (predict(FULL, hop([FURTHER], [], [])), "edges@2"),
        (predict(FULL, hop([FURTHER, WHOLE], [FURTHER], [])), "chains@2"),
        (predict(FULL, hop([WHOLE], [WHOLE], [FURTHER])), "beam@2"),
        (predict(FULL, hop([WHOLE], [WHOLE], [WHOLE])), "kept"),
        (predict(FULL, hop([WHOLE], [WHOLE], [WHOLE]), hop([], [], [])), "kept"),
    ],
)
def test_each_place(prediction: Prediction, place: str) -> None:
    assert lost_at(prediction, [GOLD]) == place


def test_the_gold_path_that_got_furthest_counts() -> None:
    prediction = predict(FULL, hop([WHOLE], [WHOLE], [FURTHER]))
    unknown: GoldWalk = ((0, -1), (5,))
    assert lost_at(prediction, [unknown]) == "edges@1"
    assert lost_at(prediction, [unknown, GOLD]) == "beam@2"
    assert lost_at(prediction, [GOLD, ((0, 1), (5,))]) == "kept"


def test_the_wrong_relation_between_the_right_entities_is_not_gold() -> None:
    assert lost_at(predict(FULL), [((0, 1), (4,))]) == "edges@1"


def test_the_table_sums_to_its_questions() -> None:
    table = pruning_table(["start", "edges@2", "beam@10", "kept", "kept", "edges@2", "untraced"])
    hops = table["hops"]
    assert isinstance(hops, dict)
    assert list(hops) == ["2", "10"]
    assert hops["2"] == {"edges": 2, "chains": 0, "beam": 0, "stopped": 0}
    lost = sum(sum(cuts.values()) for cuts in hops.values())
    assert (table["start"], table["kept"], table["untraced"]) == (1, 2, 1)
    assert lost + 4 == table["questions"] == 7
