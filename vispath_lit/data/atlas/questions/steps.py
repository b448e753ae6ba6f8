"""The hand-written forms that tell the hops of a question as steps, in order."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from vispath_lit.data.atlas.questions.forms import SIDES
from vispath_lit.data.atlas.relations import RELATIONS, SECTORS

BORDER = "borders_"
BORDERS = "borders"
"""The beginning of the ids of borders, and the name of the forms that all of them share."""

Forms = tuple[str, ...]

_DOMAINS = {relation.id: relation.domain for relation in RELATIONS}


@dataclass(frozen=True, slots=True)
class StepForms:
    """All forms of narrated questions; every sector of a border has those of `borders`.

    Attributes:
        told: relation to clauses that lead from `{x}` to something new, `{n}`.
        seek: relation to what one may be told to find out.
        called: relation to words for what it leads to.
        close: relation to short last questions.
        frame: section to name to the words that string steps together.
        beside: border to everyday words for where the neighbour lies, before the subject.
        ways: border to everyday words for the way there.
    """

    told: Mapping[str, Forms]
    seek: Mapping[str, Forms]
    called: Mapping[str, Forms]
    close: Mapping[str, Forms]
    frame: Mapping[str, Any]
    beside: Mapping[str, Forms]
    ways: Mapping[str, Forms]


@cache
def step_forms() -> StepForms:
    """The forms of `told.toml`, `closing.toml` and `narration.toml`."""
    relations, wide = _read("told"), _read("phrases_wide")
    return StepForms(
        told={r: tuple(v["told"]) for r, v in relations.items()},
        seek={r: tuple(v["seek"]) for r, v in relations.items()},
        called={r: tuple(v["called"]) for r, v in relations.items()},
        close={r: tuple(v) for r, v in _read("closing")["close"].items()},
        frame=_read("narration"),
        beside={BORDER + sector: tuple(words) for sector, words in wide["beside"].items()},
        ways={BORDER + sector: tuple(words) for sector, words in wide["ways"].items()},
    )


def is_border(relation: str) -> bool:
    """Whether a relation leads over a border in one of the eight directions."""
    return relation.startswith(BORDER)


def key(relation: str) -> str:
    """The name of the relation's forms."""
    return BORDERS if is_border(relation) else relation


def domain(relation: str) -> Forms:
    """The types of the relation's subjects; cues are read at countries."""
    return _DOMAINS.get(relation, ("country",))


def in_sector(form: str, relation: str) -> str:
    """The form with the words for the direction of a border; another relation has none."""
    if not is_border(relation):
        return form
    sector = relation.removeprefix(BORDER)
    side = SIDES[SECTORS.index(sector)]
    return form.replace("{dn}", f"{sector}ern").replace("{d}", sector).replace("{side}", side)


def _read(name: str) -> dict[str, Any]:
    here = files("vispath_lit.data.atlas.questions")
    return tomllib.loads(here.joinpath(f"{name}.toml").read_text("utf-8"))
