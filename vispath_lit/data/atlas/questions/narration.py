"""Questions of train_wide whose steps are told forwards, one after the other.

Every hop but the last is a clause of its own: a fact that leads to something new ("that buyer has its longest
frontier with another country"), an order ("then find out who sells most to it") or a move over the map. Each
refers to what the one before has reached, so the text tells the hops in the order of the path.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vispath_lit.data.atlas.questions.clauses import Clauses, owned
from vispath_lit.data.atlas.questions.filling import capital, fill, fitting, slotted, trained
from vispath_lit.data.atlas.questions.forms import SLOT, phrases
from vispath_lit.data.atlas.questions.references import Reached
from vispath_lit.data.atlas.questions.steps import is_border, key, step_forms
from vispath_lit.data.atlas.questions.tale import Manner, Tale

RUN = 3
"""The most borders that one clause tells."""


class Narrator:
    """Words gold paths as narrated questions, in forms of training only."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._words = Clauses(rng)
        self._rng = rng
        self._phrases, self._steps = phrases(wide=True), step_forms()
        self._frame = self._steps.frame

    def question(self, kind: str, relations: Sequence[str], types: Sequence[str]) -> str:
        """One wording; the arguments are those of `Writer.question`."""
        manner = self._manner()
        runs = self._runs(relations)
        tale = self._begin(kind, types[0], manner, sum(runs))
        hop = 0
        for run in runs:
            arrives = hop + run == len(relations)
            if arrives:  # Nobody asks for a letter where the answer is.
                tale.manner = replace(tale.manner, letters="")
            self._step(tale, relations[hop : hop + run], types[hop + run], moves=run > 1 or arrives)
            hop += run
        if hop == len(relations):
            end = slotted(self._words.any(self._phrases.ends), {"{t}": tale.here.noun})
            tale.say(end, numbered=False)
        else:
            self._ask(tale, relations[-1], types[-1])
        return tale.text

    def _manner(self) -> Manner:
        told = float(self._rng.choice([0.9, 0.5, 0.1]))
        joined = float(self._rng.choice([0.0, 0.4, 0.8]))
        sort = self._rng.random()
        if sort < 0.15:
            sets: list[Mapping[str, Sequence[str]]] = self._frame["list"]
            return Manner(told, 0.0, marks=sets[int(self._rng.integers(len(sets)))])
        letters = self._words.any(self._frame["letter"]["sets"]) if sort < 0.35 else ""
        return Manner(told, joined, letters)

    def _runs(self, relations: Sequence[str]) -> list[int]:
        """How many hops each clause tells; where they are all hops, the question is where one has arrived."""
        runs: list[int] = []
        hop = 0
        while hop < len(relations) - 1:
            run = 0
            while run < RUN and hop + run < len(relations) and is_border(relations[hop + run]):
                run += 1
            runs.append(run if run > 1 and self._words.chance(0.5) else 1)
            hop += runs[-1]
        if hop == len(relations) - 1 and is_border(relations[-1]) and self._words.chance(0.3):
            runs.append(1)
        return runs

    def _begin(self, kind: str, type_: str, manner: Manner, steps: int) -> Tale:
        """A tale whose start is told in a sentence, or will be named in the first step."""
        words, frame = self._words, self._frame
        noun = words.noun(type_)
        show = words.any(frame["names"][kind] if words.chance(0.35) else trained(self._phrases.show[kind]))
        sort = self._rng.random()
        tale = Tale(manner, Reached(type_, noun, phrase=show))
        if sort < 0.3:
            tale.sentences.append(words.any(trained(self._phrases.tell[kind])))
            tale.here = Reached(type_, noun)
        elif sort < 0.55:
            place = type_ in frame["order"]["place_types"] and words.chance(0.6)
            forms = frame["start"]["place" if place else "thing"]
            own = words.chance(0.7) or place
            lead = words.any(forms if own else trained(self._phrases.lead))
            tale.sentences.append(lead.replace(SLOT, show))
            tale.here = Reached(type_, noun, it=True, stands=place)
        if words.chance(0.2):
            count = frame["open"]["steps"][steps - 1 : steps]
            if count and not manner.marks and words.chance(0.4):
                opener = capital(words.any(frame["open"]["counted"]).replace("{count}", count[0]))
            else:
                opener = words.any(frame["open"]["trail"])
            if manner.marks:
                tale.sentences.append(opener)
            else:
                tale.opener = opener
        return tale

    def _step(self, tale: Tale, relations: Sequence[str], type_: str, *, moves: bool) -> None:
        """Tells one clause.

        Args:
            moves: whether it has to be a move.
        """
        relation, words = relations[0], self._words
        roles = self._steps.called.get(key(relation), ())
        new = tale.meet(type_, words.noun(type_), roles, passed=len(relations) - 1)
        joined = tale.may_join and words.chance(tale.manner.joined)
        known = key(relation) in self._steps.told
        if known and not moves and words.chance(tale.manner.told):
            self._tell(tale, relation, new, joined=joined)
            return
        joined &= tale.last is not None and not tale.last.told and not new.letter
        adverb = "" if joined else self._adverb(tale)
        join = words.any(self._frame["join"]["orders"]) if joined else ""
        if moves or (is_border(relation) and words.chance(0.6)):
            tale.add(words.moved(relations, tale.here, new, adverb), join)
        else:
            order = words.sought if known and words.chance(0.5) else words.found
            tale.add(order(relation, tale.here, new, adverb), join)

    def _adverb(self, tale: Tale) -> str:
        """What stands before an order that opens a sentence."""
        if tale.manner.marks:
            return ""
        return self._words.any(self._frame["adverb"]["next" if tale.steps else "first"])

    def _tell(self, tale: Tale, relation: str, new: Reached, *, joined: bool) -> None:
        """Adds a fact, joined to a fact by ", which" or "and ... in turn", too."""
        words, last, join, link = self._words, tale.last, "", ""
        if joined and last is not None and last.told:
            if last.open and words.chance(0.45):
                join = link = ", which"
            elif words.chance(0.5):
                join, link = ", and ", "in turn"
            else:
                join = words.any(self._frame["join"]["told"])
        elif joined:
            join = "; "
        elif tale.steps and words.chance(0.15):
            link = "in turn"
        tale.add(words.told(relation, tale.here, new, link), join)

    def _ask(self, tale: Tale, relation: str, type_: str) -> None:
        """Asks for the last hop, of what the last step has reached."""
        words, forms = self._words, self._frame["ask"]
        question = self._question(tale.here, relation, type_)
        first = question.split()[0].rstrip(",").lower()
        lower = question[0].lower() + question[1:]
        if tale.manner.letters and words.chance(0.2):
            tale.sentences.insert(0, question)
            return
        sort = self._rng.random()
        if sort < 0.15 and first in forms["words"] and tale.takes_question:
            tale.sentences[-1] += f", and {lower}"
            return
        if sort < 0.4 and first in forms["words"]:
            question = words.any(forms["lower"]).replace("{q}", lower)
        elif sort < 0.5:
            question = words.any(forms["upper"]).replace("{q}", capital(question))
        tale.say(question, numbered=sort > 0.6)

    def _question(self, here: Reached, relation: str, type_: str) -> str:
        noun = self._phrases.nouns.get(type_, type_)
        if short := self._short(here, relation):
            if re.search("(?<! of) there.$", short) and self._words.chance(0.2):
                short = short.removesuffix("?") + self._words.any(self._frame["ask"]["tail"])
            return fill(self._words.pointed(short, relation), self._words.refer(here), noun)
        subject = self._words.refer(here)
        form = self._words.any(owned(trained(fitting(self._phrases.ask[relation], subject)), subject))
        return fill(form, subject, noun)

    def _short(self, here: Reached, relation: str) -> str | None:
        """A short last question; one with "there" or "it" only where these can mean nothing else."""
        forms = [
            form
            for form in self._steps.close.get(key(relation), ())
            if SLOT in form
            or (not here.letter and (here.it or (here.clear and "there" in form.split("?")[0].split())))
        ]
        return self._words.any(forms) if forms and self._words.chance(0.4) else None
