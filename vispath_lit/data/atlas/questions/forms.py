"""The hand-written forms that gold paths are put into words with."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import cycle
from typing import Any

from vispath_lit.data.atlas.relations import SECTORS

KEPT, FIVE = 3, 5
"""Of each list the first three forms are for all splits, the next two for the test splits only, the rest for
training and val only."""

SIDES = ("upper", "upper right", "right", "lower right", "lower", "lower left", "left", "upper left")
"""Where each compass sector is on a map."""

SLOT = "{x}"

BESIDE, STEPS = 7, 3
"""How many of a sector's everyday words each form of a border, and each move, is spelled out with: so that
these forms of a border are about as many as its others, and no sort of move outnumbers the rest."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """All hand-written forms.

    Attributes:
        of: relation id to noun phrases around `{x}`.
        ask: relation id to questions around `{x}`.
        show: image kind to noun phrases that name the start by its picture.
        tell: image kind to sentences that introduce it.
        lead: sentences around `{x}` that introduce an entity on the way.
        nouns: entity type to noun.
        later: sentences that tell which entity was meant, where the question comes first.
        around: what people say around a question `{x}`.
        moves: id of a border to sentences that step over it from `{x}`, which is known by then.
        starts: sentences that say where a walk starts.
        ends: questions for where the last step has led.
    """

    of: Mapping[str, tuple[str, ...]]
    ask: Mapping[str, tuple[str, ...]]
    show: Mapping[str, tuple[str, ...]]
    tell: Mapping[str, tuple[str, ...]]
    lead: tuple[str, ...]
    nouns: Mapping[str, str]
    later: tuple[str, ...]
    around: tuple[str, ...]
    moves: Mapping[str, tuple[str, ...]]
    starts: tuple[str, ...]
    ends: tuple[str, ...]


@cache
def phrases(*, wide: bool = False) -> Phrases:
    """All forms of relations and pictures; borders are spelled out by sector.

    Args:
        wide: with those that only train_wide has, behind all others.
    """
    relations, pictures = _forms("phrases", wide), _forms("pictures", wide)
    border, beside, ways, walk = (relations.pop(part, {}) for part in ("borders", "beside", "ways", "moves"))
    moves: dict[str, tuple[str, ...]] = {}
    for sector, side in zip(SECTORS, SIDES, strict=True):
        slots = {"{dn}": sector + "ern", "{d}": sector, "{side}": side}
        lists = {"{beside}": beside.get(sector, []), "{way}": ways.get(sector, [])}
        relations[f"borders_{sector}"] = {
            part: _filled(_spelled(border[part], lists, BESIDE), slots) for part in ("of", "ask")
        }
        moves[f"borders_{sector}"] = tuple(_filled(_spelled(walk.get("go", []), lists, STEPS), slots))
    lead, nouns = pictures.pop("lead"), pictures.pop("nouns")
    later, around = (pictures.pop(name, {"forms": []})["forms"] for name in ("later", "around"))
    return Phrases(
        of={r: tuple(v["of"]) for r, v in relations.items() if "of" in v},
        ask={r: tuple(v["ask"]) for r, v in relations.items() if "ask" in v},
        show={kind: tuple(v["show"]) for kind, v in pictures.items()},
        tell={kind: tuple(v["tell"]) for kind, v in pictures.items()},
        lead=tuple(lead["forms"]),
        nouns=nouns,
        later=tuple(later),
        around=tuple(around),
        moves=moves,
        starts=tuple(walk.get("start", [])),
        ends=tuple(walk.get("end", [])),
    )


def _spelled(forms: Sequence[str], lists: Mapping[str, Sequence[str]], share: int) -> list[str]:
    """The forms, those around a slot that stands for a list of words once for each of `share` words of it.

    The words are dealt out in rotation: the next form goes on where the one before has stopped.
    """
    decks = {slot: cycle(words) for slot, words in lists.items()}
    spelled: list[str] = []
    for form in forms:
        slot = next((slot for slot in decks if slot in form), None)
        if slot is None:
            spelled.append(form)
        else:
            spelled.extend(form.replace(slot, next(decks[slot])) for _ in range(share))
    return spelled


def _filled(forms: Sequence[str], slots: Mapping[str, str]) -> list[str]:
    """The forms with every slot but `{x}` filled."""
    for slot, word in slots.items():
        forms = [form.replace(slot, word) for form in forms]
    return list(forms)


def _forms(name: str, wide: bool) -> dict[str, dict[str, Any]]:
    """The lists of a file of forms, each with its further forms for training behind it."""
    here = files("vispath_lit.data.atlas.questions")
    forms: dict[str, dict[str, Any]] = {}
    for file in (name, f"{name}_training", *([f"{name}_wide"] if wide else [])):
        for section, lists in tomllib.loads(here.joinpath(f"{file}.toml").read_text("utf-8")).items():
            for part, more in lists.items():
                if isinstance(more, str):  # nouns have one form
                    forms.setdefault(section, {})[part] = more
                else:
                    forms.setdefault(section, {}).setdefault(part, []).extend(more)
    return forms
