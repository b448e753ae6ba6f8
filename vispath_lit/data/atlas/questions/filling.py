"""Forms and what fills their slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from vispath_lit.data.atlas.questions.forms import FIVE, KEPT, SLOT

LONG = 6
"""A phrase of more words than this is never put in the middle of a clause."""


def fitting(forms: Sequence[str], subject: str) -> list[str | None]:
    """The forms that stay readable with this subject; a long one has to stand at the end.

    Where that leaves no form of either share (for all splits, for the test splits), all are kept.
    """
    if len(subject.split()) <= LONG:
        return list(forms)
    kept = [form if re.search(r"\{x\}\W*$", form) else None for form in forms]
    return kept if any(kept[:KEPT]) else list(forms)


def trained(forms: Sequence[str | None]) -> list[str]:
    """The forms that are open to training and val."""
    return [form for form in (*forms[:KEPT], *forms[FIVE:]) if form]


def slotted(form: str, slots: Mapping[str, str]) -> str:
    """The form with some of its slots filled; "a" becomes "an" where the noun {t} asks for it."""
    if slots.get("{t}", "")[:1] in set("aeiou"):
        form = re.sub(r"\b([Aa]) \{t\}", r"\1n {t}", form)
    for slot, word in slots.items():
        form = form.replace(slot, word)
    return form


def fill(form: str, subject: str, noun: str) -> str:
    """The form with its slots filled; "which that country", never "that that country"."""
    if subject.startswith("that "):
        form = form.replace("that {x}", "which {x}")
    return form.replace("{t}", noun).replace(SLOT, subject)


def capital(sentence: str) -> str:
    """The sentence with its first letter in upper case."""
    return sentence[:1].upper() + sentence[1:]
