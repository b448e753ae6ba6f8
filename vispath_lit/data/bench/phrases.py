"""A gold path as a question: relation labels nested around the picture, or phrases written by hand.

"the capital of the country of the city in the picture" is made of labels alone. A phrase file (TOML) replaces
what reads badly:

    start = ["the {t} in the picture"]              # {t}: the start's type

    [nouns]
    us_state = "state"                              # entity type to noun

    [relations.born_in]
    of = ["the place where {x} was born"]           # {x}: the phrase so far
    ask = ["Where was {x} born?"]                   # the whole question, when it is the last relation

    [relations.image_caption]
    skip = true                                     # never asked for, nor walked over
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph

SLOT, TYPE = "{x}", "{t}"
MAX_FILE = 4 << 20
START = (f"the {TYPE} in the picture", f"the {TYPE} shown in the image", f"the {TYPE} that the picture shows")
THING = "thing"

_PREPOSITIONS = "about|after|against|at|by|for|from|in|into|near|of|on|over|through|to|under|upon|with"
_ENDS_OPEN = re.compile(rf"(?:^|\s)(?:{_PREPOSITIONS})$")
_PLACED = re.compile(rf"^(\w+ed (?:{_PREPOSITIONS})) (?:the )?(.+)$")
_VERBS = re.compile(
    "^(?:borders|orbits|contains|speaks|owns|follows|precedes|produces|uses|causes|treats|affects|employs|"
    "publishes|crosses|includes|represents|founds|studies|teaches|writes|directs|leads|plays|governs|"
    "administers|operates|influences|supports|opposes|inhibits|encodes|regulates|targets|interacts|shares|"
    "belongs|flows|drains|lives|works)$"
)


@dataclass(frozen=True, slots=True)
class Phrases:
    """What a phrase file says; all of it may be missing.

    Attributes:
        of, ask: relation id to forms around `{x}`.
        skip: relations that no question uses.
        nouns: entity type to noun.
        start: forms around `{t}` that name the start by its picture.
    """

    of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ask: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    skip: frozenset[str] = frozenset()
    nouns: Mapping[str, str] = field(default_factory=dict)
    start: tuple[str, ...] = START


def read_phrases(path: Path, graph: KnowledgeGraph) -> Phrases:
    """Reads and checks a phrase file.

    Raises:
        DataError: no such file, no TOML, or a key, relation or form that is not as described above.
    """
    try:
        if path.stat().st_size > MAX_FILE:
            raise DataError(f"{path}: {path.stat().st_size} bytes; a phrase file has at most {MAX_FILE}")
        record = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as TOML in UTF-8 ({error})") from error
    _only(path, "the file", record, ("start", "nouns", "relations"))
    relations = _mapping(path, "relations", record.get("relations", {}))
    known = {graph.relation_id(r) for r in range(graph.num_relations)}
    of: dict[str, tuple[str, ...]] = {}
    ask: dict[str, tuple[str, ...]] = {}
    skip = set()
    for name, entry in relations.items():
        where = f"relations.{name}"
        if name not in known:
            raise DataError(
                f"{path}: [{where}] is no relation of {graph.path}; give ids of its relations.tsv"
            )
        _only(path, where, _mapping(path, where, entry), ("of", "ask", "skip"))
        if entry.get("skip", False) not in (True, False):
            raise DataError(f"{path}: {where}.skip is {entry['skip']!r}; expected true or false")
        if entry.get("skip"):
            skip.add(name)
        for part, forms in (("of", of), ("ask", ask)):
            if part in entry:
                forms[name] = _forms(path, f"{where}.{part}", entry[part], SLOT)
    nouns = _mapping(path, "nouns", record.get("nouns", {}))
    if bad := [type_ for type_, noun in nouns.items() if not isinstance(noun, str) or not noun.strip()]:
        raise DataError(f"{path}: nouns.{bad[0]} is {nouns[bad[0]]!r}; expected a word")
    start = _forms(path, "start", record["start"], TYPE) if "start" in record else START
    return Phrases(of, ask, frozenset(skip), nouns, start)


class Wording:
    """Words gold paths of one graph; the choices come from one seeded generator."""

    def __init__(self, graph: KnowledgeGraph, phrases: Phrases, rng: np.random.Generator) -> None:
        self._phrases, self._rng = phrases, rng
        self._ids = [graph.relation_id(r) for r in range(graph.num_relations)]
        labels = graph.relation_labels()[: graph.num_relations]
        self._clauses = [clause(label) for label in labels]

    def question(self, relations: Sequence[int], types: Sequence[str]) -> str:
        """One wording.

        Args:
            relations: h relations, forwards.
            types: h + 1 entity types, the start first.
        """
        subject = self._pick(self._phrases.start).replace(TYPE, self.noun(types[0], "entity"))
        for relation, type_ in zip(relations[:-1], types[1:-1], strict=True):
            subject = self._around(self._of(relation), subject, type_)
        asked = self._phrases.ask.get(self._ids[relations[-1]])
        form = f"What is {self._of(relations[-1])}?" if asked is None else self._pick(asked)
        text = self._around(form, subject, types[-1])
        return text[:1].upper() + text[1:]

    def noun(self, type_: str, other: str = THING) -> str:
        """The noun for an entity type."""
        return self._phrases.nouns.get(type_) or spelt(type_).lower() or other

    def _of(self, relation: int) -> str:
        forms = self._phrases.of.get(self._ids[relation])
        return self._clauses[relation] if forms is None else self._pick(forms)

    def _around(self, form: str, subject: str, type_: str) -> str:
        return form.replace(TYPE, self.noun(type_)).replace(SLOT, subject)

    def _pick(self, forms: Sequence[str]) -> str:
        return forms[int(self._rng.integers(len(forms)))]


def clause(label: str) -> str:
    """A relation's label as a noun phrase around `{x}`, with `{t}` for the type of what it leads to.

    "capital" gives "the capital of {x}", "discovered by" gives "the {t} that {x} is discovered by", "orbits"
    gives "the {t} that {x} orbits", "located in the region" gives "the region that {x} is located in".
    """
    words = spelt(label).replace("{", "(").replace("}", ")") or "value"
    first, _, rest = words.partition(" ")
    if first.lower() == "has" and rest:
        return f"the {rest} of {SLOT}"
    if first.lower() in ("is", "was") and rest:
        return f"the {TYPE} that {SLOT} {words}" if _ENDS_OPEN.search(rest) else f"the {rest} of {SLOT}"
    if _VERBS.match(first.lower()):
        return f"the {TYPE} that {SLOT} {words}"
    if _ENDS_OPEN.search(words.lower()):
        return f"the {TYPE} that {SLOT} is {words}"
    if placed := _PLACED.match(words):
        return f"the {placed[2]} that {SLOT} is {placed[1]}"
    return f"the {words.removeprefix('the ')} of {SLOT}"


def spelt(name: str) -> str:
    """A label or identifier as words: "/people/person/place_of_birth", "placeOfBirth" as "place of birth"."""
    words = name.split()
    if len(words) != 1:
        return " ".join(words)
    last = re.split(r"[/#]|(?<=\w\w)\.(?=\w\w)", words[0].rstrip("/#"))[-1]
    apart = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", last).replace("_", " ").split()
    return " ".join(word.lower() if len(apart) > 1 and word[1:].islower() else word for word in apart)


def _mapping(path: Path, where: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{path}: {where} is {value!r}; expected a table")
    return value


def _only(path: Path, where: str, found: Mapping[str, Any], allowed: Sequence[str]) -> None:
    if strange := sorted(found.keys() - set(allowed)):
        raise DataError(f"{path}: {where} has the key {strange[0]!r}; allowed are {', '.join(allowed)}")


def _forms(path: Path, where: str, value: Any, slot: str) -> tuple[str, ...]:
    good = (
        isinstance(value, list)
        and value
        and all(isinstance(form, str) and form.count(slot) == 1 for form in value)
    )
    if not good:
        raise DataError(f"{path}: {where} is {value!r}; expected texts that hold {slot} once each")
    return tuple(value)
