"""A narrated question as far as it is told: its sentences, and what its last step has reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vispath_lit.data.atlas.questions.clauses import Clause
from vispath_lit.data.atlas.questions.filling import capital
from vispath_lit.data.atlas.questions.references import Reached

CROWDED = 3
"""The most clauses of a sentence."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a question is narrated.

    Attributes:
        told: the share of steps told as facts.
        joined: the share of clauses joined to the one before.
        letters: the letters that name what is reached, or none.
        marks: the numbers of its steps and how to refer to them, or none.
    """

    told: float
    joined: float
    letters: str = ""
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)


class Tale:
    """A question as far as it is told."""

    def __init__(self, manner: Manner, here: Reached) -> None:
        self.manner, self.here = manner, here
        self.sentences: list[str] = []
        self.opener = ""
        self.last: Clause | None = None
        self.steps = 0
        self._met = Counter([here.type])
        self._clauses = 0

    def meet(self, type_: str, noun: str, roles: Sequence[str], *, passed: int = 0) -> Reached:
        """What the next step will reach.

        Args:
            type_: its entity type.
            noun: what to call it.
            roles: words for its part in the step.
            passed: how many of its type the step passes on the way.
        """
        self._met[type_] += 1 + passed
        letters, marks = self.manner.letters, self.manner.marks
        return Reached(
            type_,
            noun,
            nth=self._met[type_],
            roles=tuple(role.replace("{t}", noun) for role in roles),
            letter=letters[self.steps] if letters else "",
            mark=marks["back"][self.steps] if marks else "",
        )

    def add(self, clause: Clause, join: str = "") -> None:
        """Adds a step: joined to the last sentence, or as one of its own."""
        if join:
            self.sentences[-1] += join + clause.text
        else:
            self.say(clause.text)
        self._clauses = self._clauses + 1 if join else 1
        self.last, self.here = clause, clause.reached
        self.steps += 1

    def say(self, sentence: str, *, numbered: bool = True) -> None:
        """Adds a sentence: behind the opener if it is waiting, or behind its number."""
        if self.opener:
            sentence, self.opener = f"{self.opener} {sentence}", ""
        elif numbered and self.manner.marks:
            sentence = f"{self.manner.marks['marks'][self.steps]} {capital(sentence)}"
        self.sentences.append(sentence)

    @property
    def may_join(self) -> bool:
        """Whether the last sentence can take another clause."""
        return self.last is not None and not self.manner.marks and self._clauses < CROWDED

    @property
    def takes_question(self) -> bool:
        """Whether the question can follow in the last sentence."""
        return self.may_join and self.last is not None and self.last.told and self._clauses < CROWDED - 1

    @property
    def text(self) -> str:
        """The sentences."""
        return " ".join(capital(s) if s[-1] in ".?!:" else f"{capital(s)}." for s in self.sentences)
