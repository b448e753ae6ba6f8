"""From a gold path to an English question.

The start is named by what its picture shows, every middle relation becomes a noun phrase around the
phrase before it, and the last relation becomes the question. Four things vary: the forms of the
relations, how the start is introduced, whether the question is one sentence or several, and, in train_wide
only, whether what is asked comes first, what people say around it, and whether borders are told as the steps
of a walk over the map. A share of train_wide is not nested but narrated (`narration.py`), and
another is not made of forms at all (`paraphrases.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from vispath_lit.data.atlas.questions.filling import capital, fill, fitting
from vispath_lit.data.atlas.questions.forms import FIVE, KEPT, SLOT, phrases
from vispath_lit.data.atlas.questions.narration import Narrator

WALK, ARRIVE = 0.5, 0.25
"""How often train_wide tells a border as a step: one that ends a sentence, and one that ends the question."""

CHATTY = 0.2
"""How often train_wide says something around a question."""

NARRATED = 0.3
"""The share of train_wide's questions in forms that tells its steps forwards. Seven in ten of all training
questions nest their hops, as most of the other splits do; the rest are narrated or free."""


@dataclass(frozen=True, slots=True)
class Worded:
    """A question in words and whether one of its forms is unknown to training."""

    text: str
    new_form: bool


@dataclass(frozen=True, slots=True)
class Frame:
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
        wide: also the forms and frames of train_wide.
    """

    def __init__(self, rng: np.random.Generator, *, held_out: bool, wide: bool = False) -> None:
        self._rng = rng
        self._held_out = held_out
        self._wide = wide
        self._phrases = phrases(wide=wide)
        self._new = False
        self._narrator = Narrator(rng)

    def question(self, kind: str, relations: Sequence[str], types: Sequence[str]) -> Worded:
        """One wording.

        Args:
            kind: kind of the start's picture.
            relations: h relation ids.
            types: h + 1 entity types, the start first.
        """
        self._new = False
        if self._wide and self._rng.random() < NARRATED:
            text = self._narrator.question(kind, relations, types)
            return Worded(self._around(text) if self._rng.random() < CHATTY else text, new_form=False)
        frame = self._frame(len(relations))
        sentences: list[str] = []
        if frame.told:
            sentences.append(self._pick(self._phrases.tell[kind]))
            subject = self.that(types[0])
        else:
            subject = self._pick(self._phrases.show[kind])
        for hop in range(len(relations) - 1):
            if hop + 1 in frame.pauses and self._steps(relations[hop], WALK):
                sentences += self._walk(relations[hop], subject, types[hop:], known=hop in frame.pauses)
                subject = self.that(types[hop + 1])
                continue
            subject = self._of(relations[hop], subject, types[hop + 1])
            if hop + 1 in frame.pauses:
                sentences.append(self._pick(self._phrases.lead).replace(SLOT, subject))
                subject = self.that(types[hop + 1])
        if frame.asked_first:
            meant = self._any(self._phrases.later).replace(SLOT, subject)
            sentences = [self._ask(relations[-1], self.certain(types[-2]), types[-1]), *sentences, meant]
        elif sentences and self._steps(relations[-1], ARRIVE):
            known = len(relations) - 1 in frame.pauses
            sentences += self._walk(relations[-1], subject, types[-2:], known=known)
            sentences.append(self._any(self._phrases.ends).replace("{t}", self._phrases.nouns[types[-1]]))
        else:
            sentences.append(self._ask(relations[-1], subject, types[-1]))
        text = " ".join(capital(s) for s in sentences)
        return Worded(self._around(text) if frame.chatty else text, self._new)

    def _around(self, text: str) -> str:
        """The question with what people say around one."""
        return self._any(self._phrases.around).replace(SLOT, text)

    def that(self, type_: str) -> str:
        """Points back to the sentence before: "that country"."""
        return f"that {self._phrases.nouns[type_]}"

    def certain(self, type_: str) -> str:
        """Points ahead to a sentence that will tell which one: "a certain country"."""
        return f"a certain {self._phrases.nouns[type_]}"

    def _frame(self, hops: int) -> Frame:
        told = bool(self._rng.random() < 0.2 + 0.1 * hops)
        pause = bool(self._rng.random() < 0.15 * hops - 0.1 - 0.1 * told) and hops > 1
        pauses = {int(self._rng.integers(max(1, hops - 2), hops))} if pause else set[int]()
        if not self._wide:
            return Frame(told, pauses)
        more, first, chatty = self._rng.random(3) < (0.2, 0.12, CHATTY)
        if more:
            pauses |= {hop for hop in range(1, hops) if self._rng.random() < 0.6}
        if first:
            pauses -= {hops - 1}
        return Frame(told, pauses, bool(first), bool(chatty))

    def _steps(self, relation: str, chance: float) -> bool:
        """Whether to tell a relation as a step; nothing is drawn but for the borders of train_wide."""
        return self._wide and relation in self._phrases.moves and bool(self._rng.random() < chance)

    def _walk(self, relation: str, subject: str, types: Sequence[str], *, known: bool) -> list[str]:
        """A step over a border, with a sentence before it that puts the walker there unless one has.

        Args:
            types: of the subject, and of what lies over the border.
            known: whether the sentence before has led to the subject.
        """
        start = [] if known else [self._any(self._phrases.starts).replace(SLOT, subject)]
        step = self._any(self._phrases.moves[relation])
        return [*start, fill(step, self.that(types[0]), self._phrases.nouns[types[1]])]

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
