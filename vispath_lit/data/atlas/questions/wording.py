"""From a gold path to an English question.

The start is named by what its picture shows, every middle relation becomes a noun phrase around the
phrase before it, and the last relation becomes the question. Four things vary: the forms of the
relations, how the start is introduced, whether the question is one sentence or several, and, in train and
val only, whether what is asked comes first and what people say around it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from vispath_lit.data.atlas.relations import SECTORS

KEPT, FIVE = 3, 5
"""Of each list the first three forms are for all splits, the next two for the test splits only, the rest for
train and val only."""

SIDES = ("upper", "upper right", "right", "lower right", "lower", "lower left", "left", "upper left")
"""Where each compass sector is on a map."""

SLOT = "{x}"
LONG = 6
"""A phrase of more words than this is never put in the middle of a clause."""


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
    """

    of: Mapping[str, tuple[str, ...]]
    ask: Mapping[str, tuple[str, ...]]
    show: Mapping[str, tuple[str, ...]]
    tell: Mapping[str, tuple[str, ...]]
    lead: tuple[str, ...]
    nouns: Mapping[str, str]
    later: tuple[str, ...]
    around: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Worded:
    """A question in words and whether one of its forms is unknown to training."""

    text: str
    new_form: bool


@cache
def phrases() -> Phrases:
    """The forms of `phrases.toml` and `pictures.toml` and the further ones; borders spelled out by sector."""
    relations, pictures = _forms("phrases"), _forms("pictures")
    border = relations.pop("borders")
    for sector, side in zip(SECTORS, SIDES, strict=True):
        slots = {"{dn}": sector + "ern", "{d}": sector, "{side}": side}
        relations[f"borders_{sector}"] = {part: _filled(border[part], slots) for part in ("of", "ask")}
    lead, nouns = pictures.pop("lead"), pictures.pop("nouns")
    later, around = pictures.pop("later"), pictures.pop("around")
    return Phrases(
        of={r: tuple(v["of"]) for r, v in relations.items() if "of" in v},
        ask={r: tuple(v["ask"]) for r, v in relations.items() if "ask" in v},
        show={kind: tuple(v["show"]) for kind, v in pictures.items()},
        tell={kind: tuple(v["tell"]) for kind, v in pictures.items()},
        lead=tuple(lead["forms"]),
        nouns=nouns,
        later=tuple(later["forms"]),
        around=tuple(around["forms"]),
    )


def _filled(forms: Sequence[str], slots: Mapping[str, str]) -> list[str]:
    """The forms with every slot but `{x}` filled."""
    for slot, word in slots.items():
        forms = [form.replace(slot, word) for form in forms]
    return list(forms)


def _forms(name: str) -> dict[str, dict[str, Any]]:
    """The lists of a file of forms, each with its further forms for training behind it."""
    here = files("vispath_lit.data.atlas.questions")
    forms, further = (
        tomllib.loads(here.joinpath(f"{file}.toml").read_text(encoding="utf-8"))
        for file in (name, f"{name}_training")
    )
    for section, lists in further.items():
        for part, more in lists.items():
            forms.setdefault(section, {}).setdefault(part, []).extend(more)
    return forms


@dataclass(frozen=True, slots=True)
class Plan:
    """The sentences of a question.

    Attributes:
        told: whether the picture gets its own sentence.
        pauses: the hops after which a sentence ends.
        asked_first: whether what is asked comes before what it is asked of.
        chatty: whether something is said around it.
    """

    told: bool
    pauses: Collection[int]
    asked_first: bool = False
    chatty: bool = False


class Writer:
    """Words gold paths; the choices come from one seeded generator.

    Args:
        held_out: the forms kept for the test splits in place of those for training.
    """

    def __init__(self, rng: np.random.Generator, *, held_out: bool) -> None:
        self._rng = rng
        self._held_out = held_out
        self._phrases = phrases()
        self._new = False

    def question(self, kind: str, relations: Sequence[str], types: Sequence[str]) -> Worded:
        """One wording.

        Args:
            kind: kind of the start's picture.
            relations: h relation ids.
            types: h + 1 entity types, the start first.
        """
        self._new = False
        plan = self._plan(len(relations))
        sentences: list[str] = []
        if plan.told:
            sentences.append(self._pick(self._phrases.tell[kind]))
            subject = self.that(types[0])
        else:
            subject = self._pick(self._phrases.show[kind])
        for hop in range(len(relations) - 1):
            subject = self._of(relations[hop], subject, types[hop + 1])
            if hop + 1 in plan.pauses:
                sentences.append(self._pick(self._phrases.lead).replace(SLOT, subject))
                subject = self.that(types[hop + 1])
        if plan.asked_first:
            meant = self._any(self._phrases.later).replace(SLOT, subject)
            sentences = [self._ask(relations[-1], self.certain(types[-2]), types[-1]), *sentences, meant]
        else:
            sentences.append(self._ask(relations[-1], subject, types[-1]))
        text = " ".join(capital(s) for s in sentences)
        return Worded(self._any(self._phrases.around).replace(SLOT, text) if plan.chatty else text, self._new)

    def that(self, type_: str) -> str:
        """Points back to the sentence before: "that country"."""
        return f"that {self._phrases.nouns[type_]}"

    def certain(self, type_: str) -> str:
        """Points ahead to a sentence that will tell which one: "a certain country"."""
        return f"a certain {self._phrases.nouns[type_]}"

    def _plan(self, hops: int) -> Plan:
        told = bool(self._rng.random() < 0.2 + 0.1 * hops)
        pause = bool(self._rng.random() < 0.15 * hops - 0.1 - 0.1 * told) and hops > 1
        pauses = {int(self._rng.integers(max(1, hops - 2), hops))} if pause else set[int]()
        if self._held_out:
            return Plan(told, pauses)
        more, first, chatty = self._rng.random(3) < (0.2, 0.12, 0.2)
        if more:
            pauses |= {hop for hop in range(1, hops) if self._rng.random() < 0.6}
        if first:
            pauses -= {hops - 1}
        return Plan(told, pauses, bool(first), bool(chatty))

    def _of(self, relation: str, subject: str, type_: str) -> str:
        form = self._pick(fitting(self._phrases.of[relation], subject))
        return fill(form, subject, self._phrases.nouns.get(type_, type_))

    def _ask(self, relation: str, subject: str, type_: str) -> str:
        form = self._pick(fitting(self._phrases.ask[relation], subject))
        return fill(form, subject, self._phrases.nouns.get(type_, type_))

    def _any(self, forms: Sequence[str]) -> str:
        return forms[int(self._rng.integers(len(forms)))]

    def _pick(self, forms: Sequence[str | None]) -> str:
        mine = range(FIVE) if self._held_out else [*range(KEPT), *range(FIVE, len(forms))]
        open_ = [i for i in mine if forms[i]]
        chosen = open_[int(self._rng.integers(len(open_)))]
        self._new |= chosen >= KEPT and self._held_out
        form = forms[chosen]
        assert form is not None
        return form


def fitting(forms: Sequence[str], subject: str) -> list[str | None]:
    """The forms that stay readable with this subject; a long one has to stand at the end.

    Where that leaves no form of either share (for all splits, for the test splits), all are kept.
    """
    if len(subject.split()) <= LONG:
        return list(forms)
    kept = [form if re.search(r"\{x\}\W*$", form) else None for form in forms]
    return kept if any(kept[:KEPT]) else list(forms)


def fill(form: str, subject: str, noun: str) -> str:
    """The form with its slots filled; "which that country", never "that that country"."""
    if subject.startswith("that "):
        form = form.replace("that {x}", "which {x}")
    return form.replace("{t}", noun).replace(SLOT, subject)


def capital(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
