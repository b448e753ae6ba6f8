"""How a narrated question refers to what its last step has reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from vispath_lit.data.atlas.questions.filling import slotted
from vispath_lit.data.atlas.questions.steps import domain

ORDINALS = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Reached:
    """What the text has come to.

    Attributes:
        type: entity type.
        noun: what the text calls an entity of this type.
        nth: which of its type it is, from 1.
        roles: words for its part in the step, as "buyer".
        letter: its letter, if it has one.
        phrase: what its picture is called, if the text has not named it yet.
        clear: whether "that country" and "there" can mean nothing else.
        it: whether "it" may stand for it.
        rival: the type of what else "it" could mean, in a sentence that fits both.
        latter: whether it is the last of two that a clause names.
        found: whether the text has told to find it.
        walked: whether the text has led there.
        stands: whether one stands there, so that a move can start.
        somewhere: whether the text calls it a place only.
        mark: what its step is called in a numbered list.
    """

    type: str
    noun: str
    nth: int = 1
    roles: tuple[str, ...] = ()
    letter: str = ""
    phrase: str = ""
    clear: bool = True
    it: bool = False
    rival: str = ""
    latter: bool = False
    found: bool = False
    walked: bool = False
    stands: bool = False
    somewhere: bool = False
    mark: str = ""

    def is_it(self, relation: str) -> bool:
        """Whether "it" can mean nothing else where it is the subject of a relation."""
        return self.it and self.rival not in domain(relation)


def references(here: Reached, refer: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The references that are open to the next sentence, in groups of one sort.

    Args:
        here: what to refer to.
        refer: the forms by sort.
    """
    if here.phrase:
        return [[here.phrase]]
    groups = [_filled(refer[sort], here) for sort in _sorts(here)]
    roles = [form.replace("{r}", role) for form in refer["role"] for role in here.roles]
    return [*groups, *[_filled(roles, here)] * 2] if roles and not here.letter else groups


def _sorts(here: Reached) -> list[str]:
    """The open sorts; those around a role are weighed by the caller."""
    if here.letter:
        return ["lettered"]
    if here.somewhere:
        return ["somewhere"]
    open_ = {
        "plain": here.clear and here.nth > 1,
        "lone": here.clear and here.nth == 1,
        "latter": here.latter,
        "latter_of": here.latter and here.nth > 1,
        "nth": here.nth > 1,
        "other": here.nth == len(("one", "other")),
        "found": here.found,
        "walked": here.walked,
        "listed": bool(here.mark),
    }
    return [sort for sort, is_open in open_.items() if is_open]


def _filled(forms: Sequence[str], here: Reached) -> list[str]:
    nth = ORDINALS[here.nth - 1]
    slots = {"{t}": here.noun, "{nth}": nth, "{l}": here.letter, "{back}": here.mark}
    return [slotted(form, slots) for form in forms]
