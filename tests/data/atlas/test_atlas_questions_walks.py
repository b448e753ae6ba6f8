"""Borders in the everyday words and the steps of train_wide."""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

from vispath_lit.data.atlas.questions import wording
from vispath_lit.data.atlas.questions.forms import BESIDE, SLOT, STEPS, phrases
from vispath_lit.data.atlas.questions.wording import Writer
from vispath_lit.data.atlas.relations import RELATIONS, SECTORS

ALL = phrases(wide=True)
LISTS = tomllib.loads(
    files("vispath_lit.data.atlas.questions").joinpath("phrases_wide.toml").read_text("utf-8")
)
WORDS = {
    "north": ("north", "up", "above", "top", "atop"),
    "south": ("south", "down", "below", "bottom", "lower", "under", "beneath", "foot"),
    "east": ("east", "right", "sunrise"),
    "west": ("west", "left", "sunset"),
}
"""Beginnings of the words that tell a direction."""


@pytest.mark.parametrize("sector", SECTORS)
@pytest.mark.parametrize("name", ["beside", "ways"])
def test_everyday_words_name_their_own_sector_and_no_other(name: str, sector: str) -> None:
    assert tuple(LISTS[name]) == SECTORS
    for phrase in LISTS[name][sector]:
        told = {
            direction
            for direction, starts in WORDS.items()
            if any(word.startswith(starts) for word in re.findall("[a-z]+", phrase))
        }
        assert "".join(d for d in WORDS if d in told) == sector, phrase


@pytest.mark.parametrize("name", ["beside", "ways"])
def test_no_two_sectors_share_a_phrase(name: str) -> None:
    for first, second in combinations(LISTS[name].values(), 2):
        assert not set(first) & set(second)


@pytest.mark.parametrize(
    ("name", "slot", "forms", "share"),
    [
        ("beside", "{beside}", LISTS["borders"]["of"], BESIDE),
        ("beside", "{beside}", LISTS["borders"]["ask"], BESIDE),
        ("beside", "{beside}", LISTS["moves"]["go"], STEPS),
        ("ways", "{way}", LISTS["moves"]["go"], STEPS),
    ],
)
def test_every_phrase_gets_its_turn_and_no_form_comes_twice(
    name: str, slot: str, forms: list[str], share: int
) -> None:
    holders = sum(slot in form for form in forms)
    for words in LISTS[name].values():
        assert share <= len(set(words)) == len(words) <= holders * share
    for relation, moves in ALL.moves.items():
        assert len(set(moves)) == len(moves)
        assert not any("{" in move.replace("{t}", "").replace(SLOT, "") for move in moves), relation


@pytest.mark.parametrize("part", ["of", "ask"])
def test_everyday_words_are_about_half_of_the_forms_of_a_border(part: str) -> None:
    spelled = BESIDE * sum("{beside}" in form for form in LISTS["borders"][part])
    assert 0.4 < spelled / len(getattr(ALL, part)["borders_east"]) < 0.6


INSIDE = ("at the top", "at the bottom", "at the foot", "edge of", "corner of", "side of", "border of")
BEYOND = ("past", "off", "over", "beyond", "sunrise side", "sunset side")


@pytest.mark.parametrize("sector", SECTORS)
def test_everyday_words_say_beside_and_not_within(sector: str) -> None:
    for phrase in LISTS["beside"][sector]:
        assert not any(words in phrase for words in INSIDE) or any(words in phrase for words in BEYOND), (
            phrase
        )


def test_the_other_splits_have_no_steps() -> None:
    assert not any(phrases().moves.values())
    assert not phrases().starts
    assert not phrases().ends


def test_wide_questions_of_all_relations_and_lengths_have_no_open_slot() -> None:
    writer = Writer(np.random.default_rng(0), held_out=False, wide=True)
    middle = [r.id for r in RELATIONS if r.id in ALL.of]
    last = [r.id for r in RELATIONS if r.id in ALL.ask]
    rng = np.random.default_rng(1)
    for serial in range(4000):
        hops = 2 + serial % 3
        relations = [str(rng.choice(middle)) for _ in range(hops - 1)] + [last[serial % len(last)]]
        if serial % 2:
            relations[-2] = f"borders_{SECTORS[serial // 2 % 8]}"
        text = writer.question("flag", relations, ["country"] * (hops + 1)).text
        assert "{" not in text, text
        assert "  " not in text
        assert "that that" not in text


@pytest.fixture
def nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wording, "NARRATED", 0.0)


def walks(wide: bool) -> list[str]:
    writer = Writer(np.random.default_rng(0), held_out=False, wide=wide)
    relations, types = ["borders_south", "borders_northeast"], ["country"] * 3
    return [writer.question("flag", relations, types).text for _ in range(1000)]


@pytest.mark.usefixtures("nested")
def test_a_border_in_the_middle_or_at_the_end_may_be_told_as_a_step() -> None:
    def told(relation: str) -> list[str]:
        steps = [s.replace("{t}", "country").replace(SLOT, "that country") for s in ALL.moves[relation]]
        return [text for text in walks(wide=True) if any(step in text for step in steps)]

    assert 50 < len(told("borders_south")) < 400
    arrived = told("borders_northeast")
    assert 50 < len(arrived) < 300
    ends = [end.replace("{t}", "country") for end in ALL.ends]
    assert all(any(end in text for end in ends) for text in arrived)
    assert not any(end in text for text in walks(wide=False) for end in ends)
