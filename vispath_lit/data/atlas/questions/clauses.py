"""The clauses of a narrated question: one step each, or a few over borders in a row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vispath_lit.data.atlas.questions.filling import LONG, fill, fitting, slotted, trained
from vispath_lit.data.atlas.questions.forms import SLOT, phrases
from vispath_lit.data.atlas.questions.references import ORDINALS, Reached, references
from vispath_lit.data.atlas.questions.steps import in_sector, is_border, key, step_forms

NEW = "{n}"

IT = 0.3
"""How often "it" is the subject where nothing else can be meant."""

SOMEWHERE = 0.12
"""How often a country is told as "somewhere else" by a relation that leads from country to country."""

BY_NAME = ("main_export_partner", "main_import_partner", "longest_border_with", "shortest_border_with")
"""Relations whose told steps say all of it without the noun "country"."""

OWNER = 3
"""A subject of more words than this takes no "'s"."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A step in words: a clause without capital and full stop.

    Attributes:
        told: whether it tells a fact; otherwise it is an order.
        open: whether it ends with what is reached, so that ", which" can follow.
    """

    text: str
    reached: Reached
    told: bool = False
    open: bool = False


class Clauses:
    """Words single steps; the choices come from the generator of the questions."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._phrases, self._steps = phrases(wide=True), step_forms()
        self._frame = self._steps.frame

    def any(self, forms: Sequence[str]) -> str:
        """One of the forms."""
        return forms[int(self._rng.integers(len(forms)))]

    def chance(self, share: float) -> bool:
        """True in this share of the cases."""
        return bool(self._rng.random() < share)

    def noun(self, type_: str) -> str:
        """What to call an entity of a type."""
        usual = self._phrases.nouns.get(type_, type_)
        return self.any(self._frame["nouns"].get(type_, [usual]))

    def refer(self, here: Reached) -> str:
        """A reference to what the last step has reached."""
        groups = references(here, self._frame["refer"])
        return self.any(groups[int(self._rng.integers(len(groups)))])

    def told(self, relation: str, here: Reached, new: Reached, link: str = "") -> Clause:
        """A fact that leads from `here` to `new`.

        Args:
            link: ", which" in place of a subject, or "in turn" behind it.
        """
        subject = self.refer(here)
        told = self._steps.told[key(relation)]
        forms = [form for form in told if form.startswith(SLOT)] if link else _readable(told, subject)
        form = self.pointed(self.any(forms), relation)
        clear = form.index(SLOT) < form.index(NEW) or here.type != new.type
        if link == ", which":
            form, subject = form.removeprefix(SLOT), ""
        elif link:
            form = form.replace(SLOT, f"{SLOT} {link}")
        elif form.startswith(SLOT) and here.is_it(relation) and self.chance(IT):
            subject = "it"
        mention, somewhere = self._mention(new, fits=relation in BY_NAME)
        reached = replace(
            new,
            clear=clear,
            it=here.type != new.type,
            rival=here.type,
            latter=form.find(SLOT) < form.index(NEW),
            somewhere=somewhere,
        )
        named = form.replace(NEW, mention).replace("in somewhere", "somewhere")
        text = _filled(named, subject, new.noun)
        return Clause(text, reached, told=True, open=form.endswith(NEW) and not text.endswith(")"))

    def found(self, relation: str, here: Reached, new: Reached, adverb: str) -> Clause:
        """An order to find what a noun phrase names."""
        subject = self.refer(here)
        forms = trained(fitting(self._phrases.of[relation], subject))
        phrase = _filled(self.any(owned(forms, subject)), subject, new.noun)
        reached = replace(new, found=True, it=True)
        if new.letter:
            letter = self.any(self._frame["letter"]["of"])
            return Clause(slotted(letter, {"{l}": new.letter, "{of}": phrase}), reached)
        place = new.type in self._frame["order"]["place_types"] and self.chance(0.4)
        begins = place and bool(here.phrase) and self.chance(0.5)
        order = self.any(self._frame["order"]["begin" if begins else "place" if place else "thing"])
        text = ("" if begins else adverb) + order.replace("{of}", phrase)
        return Clause(text, replace(reached, walked=place, stands=place))

    def sought(self, relation: str, here: Reached, new: Reached, adverb: str) -> Clause:
        """An order to find something out."""
        subject = self.refer(here)
        form = self.pointed(self.any(_readable(self._steps.seek[key(relation)], subject)), relation)
        order = self.any(self._frame["order"]["seek"])
        text = adverb + order.replace("{seek}", _filled(form, subject, new.noun)) + self._behind(new)
        differ = here.type != new.type
        return Clause(text, replace(new, clear=differ, it=differ, rival=here.type, found=True))

    def moved(self, relations: Sequence[str], here: Reached, new: Reached, adverb: str) -> Clause:
        """An order to go over one border, or over several in a row."""
        run = "run_" * (len(relations) > 1)
        on = here.stands and not here.phrase and self.chance(0.7)
        there = not on and not run and here.clear and not here.phrase and self.chance(0.3)
        subject = "" if on or there else self.refer(here)
        forms = self._frame["move"]["on" if there else f"{run}{'on' if on else 'from'}"]
        form = self.any(_readable(forms, subject))
        text = _filled(self.pointed(self._ways(form, relations), relations[0]), subject, new.noun)
        first = self.any(self._frame["move"]["there"]) if there else adverb
        clear = on or there
        return Clause(
            first + text + self._behind(new), replace(new, clear=clear, it=clear, walked=True, stands=True)
        )

    def _ways(self, form: str, relations: Sequence[str]) -> str:
        """The form of a run with its ways; that of a single move has none."""
        if len(relations) == 1:
            return form
        move, at = self._frame["move"], len(relations) - 1
        ways = [self.any(self._steps.ways[relation]) for relation in relations]
        around = self.any(move["ways" if at == 1 else "ways_of_three"])
        hops = around.format(*[f"one {{t}} {way}" for way in ways])
        slots = {"{ways}": around.format(*ways), "{hops}": hops}
        return slotted(form, slots | {"{count}": move["moves"][at], "{borders}": move["borders"][at]})

    def _mention(self, new: Reached, *, fits: bool) -> tuple[str, bool]:
        """The first mention of something, and whether it calls it a place only."""
        forms = self._frame["new"]
        if new.letter:
            return self._slotted(self.any(forms["lettered"]), new), False
        if fits and self.chance(SOMEWHERE):
            return self.any(forms["somewhere"]), True
        return self._slotted(self.any(forms["other" if new.nth > 1 else "first"]), new), False

    def _behind(self, new: Reached) -> str:
        """What gives a letter to the thing that an order is after."""
        return self._slotted(self.any(self._frame["letter"]["behind"]), new) if new.letter else ""

    def _slotted(self, form: str, new: Reached) -> str:
        return slotted(form, {"{nth}": ORDINALS[new.nth - 1], "{t}": new.noun, "{l}": new.letter})

    def pointed(self, form: str, relation: str) -> str:
        """The form with the words for the direction of a border."""
        if is_border(relation):
            words = {"{beside}": self._steps.beside[relation], "{way}": self._steps.ways[relation]}
            form = slotted(form, {slot: self.any(forms) for slot, forms in words.items()})
        return in_sector(form, relation)


def _readable(forms: Sequence[str], subject: str) -> list[str]:
    """The forms in which the subject stands well: a long one at the beginning or the end."""
    if len(subject.split()) <= LONG:
        return list(forms)
    return [f for f in forms if f.startswith(SLOT) or f.endswith(SLOT)] or list(forms)


def owned(forms: Sequence[str], subject: str) -> list[str]:
    """The forms without "'s" where the subject is too long for it, or has one."""
    if len(subject.split()) <= OWNER and "'s" not in subject:
        return list(forms)
    return [form for form in forms if f"{SLOT}'s" not in form] or list(forms)


def _filled(form: str, subject: str, noun: str) -> str:
    """The form with its slots filled; a subject with a comma in it gets one behind it."""
    if "," in subject:
        form = re.sub(r"\{x\}(?= )", "{x},", form)
    return fill(form, subject, noun)
