"""Divisions, cities and airports: which lies in which, and the largest city of each area."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from functools import cache

import us

from vispath_lit.data.atlas.countries import countries, fold
from vispath_lit.data.atlas.facts.gazetteer import (
    Division,
    Place,
    district,
    divisions,
    first_division,
    places,
    places_named,
    places_of,
)
from vispath_lit.data.atlas.facts.nations import country_rows, current_zone, single_zones, timezone
from vispath_lit.data.atlas.packages import package_file
from vispath_lit.data.atlas.sheet import FactSheet

LEAST_POPULATION = 25_000
"""Smaller places are left out, unless something else speaks of them."""
AIRPORT_REACH_KM = 80.0


def add_divisions(sheet: FactSheet, codes: Iterable[str]) -> None:
    """First-level divisions (states of the United States are added with their own facts)."""
    wanted = set(codes)
    for division in divisions().values():
        if division.country in wanted and division.type == "subdivision":
            _add_division(sheet, division)


def _add_division(sheet: FactSheet, division: Division) -> str:
    country = countries()[division.country]
    names = [*division.aliases, division.iso]
    id_ = sheet.entity(division.type, division.key, division.name, names, parent=country.label)
    sheet.add(id_, "in_country", f"country:{division.country}")
    if division.type == "subdivision" and division.kind:
        sheet.add(id_, "subdivision_kind", sheet.concept("subdivision_kind", division.kind))
    return id_


def add_cities(sheet: FactSheet, codes: Iterable[str]) -> list[Place]:
    """Cities with their country, divisions and time zone; returns them."""
    wanted, zones, single = set(codes), _city_zones(), single_zones()
    kept = [place for place in places() if place.country in wanted and place.geonames in _kept_places()]
    for place in kept:
        add_city(sheet, place)
        zone = zones.get(place.geonames) or single.get(place.country)
        if zone:
            sheet.add(place.id, "timezone", timezone(sheet, zone))
    _add_largest_cities(sheet, kept)
    for row in country_rows("capital"):
        capital = f"city:{row['geonames_id']}"
        if capital in sheet.entities and row["alpha2"] in wanted:
            sheet.add(f"country:{row['alpha2']}", "capital", capital)
    taipei = places_named("TW", "Taipei")
    if taipei and taipei[0].id in sheet.entities:
        sheet.add("country:TW", "capital", taipei[0].id)
    return kept


def add_city(sheet: FactSheet, place: Place) -> str:
    """One city with the divisions that it lies in."""
    first, small = first_division(place), district(place)
    parent = first.name if first else countries()[place.country].label
    id_ = sheet.entity(
        "city",
        place.geonames,
        place.name,
        [_plain(place.name)],
        parent=parent,
        weight=float(place.population),
    )
    sheet.add(id_, "in_country", f"country:{place.country}")
    if first:
        if first.type == "subdivision":
            _add_division(sheet, first)
        if first.id in sheet.entities:
            sheet.add(id_, "in_subdivision", first.id)
    if small and first and first.id in sheet.entities:
        _add_district(sheet, small, first)
        if small.id in sheet.entities:
            sheet.add(id_, "in_district", small.id)
    return id_


def _add_district(sheet: FactSheet, small: Division, first: Division) -> None:
    if small.type == "county":
        return
    id_ = sheet.entity("district", small.key, small.name, small.aliases, parent=first.name)
    sheet.add(id_, "in_country", f"country:{small.country}")
    sheet.add(id_, "in_subdivision", first.id)


def _plain(name: str) -> str:
    """The name as an English keyboard writes it: "Zürich" gives Zurich; else nothing."""
    letters = fold(name)
    return letters.title() if len(letters) == len(name) and letters != name.lower() else ""


@cache
def _kept_places() -> frozenset[str]:
    """GeoNames ids of the places that are cities of the graph."""
    kept = {place.geonames for place in places() if place.population >= LEAST_POPULATION}
    kept |= {str(row["geonames_id"]) for table in ("capital", "city") for row in country_rows(table)}
    kept |= {city.geonames for city in state_capitals().values()}
    largest: dict[str, Place] = {}
    for place in places_of("US"):
        county = district(place)
        if county and county.type == "county":
            held = largest.get(county.id)
            if place.population > (held.population if held else 0):
                largest[county.id] = place
    return frozenset(kept | {place.geonames for place in largest.values()})


@cache
def state_capitals() -> dict[str, Place]:
    """The capital of each state of the United States by the state's entity id."""
    found = {}
    for state in us.states.STATES:
        named = places_named("US", str(state.capital))
        inside = [
            place for place in named if (first := first_division(place)) and first.key == f"US-{state.abbr}"
        ]
        if inside:
            found[f"us_state:US-{state.abbr}"] = max(inside, key=lambda place: place.population)
    return found


def _city_zones() -> dict[str, str]:
    rows = [row for table in ("capital", "city") for row in country_rows(table)]
    return {str(row["geonames_id"]): str(row["timezone_id"]) for row in rows if row["timezone_id"]}


def _add_largest_cities(sheet: FactSheet, kept: list[Place]) -> None:
    """The most populous city of each area; none where two count the same."""
    members: dict[str, list[Place]] = {}
    for place in kept:
        first, small = first_division(place), district(place)
        areas = [f"country:{place.country}", *(division.id for division in (first, small) if division)]
        for area in areas:
            members.setdefault(area, []).append(place)
    for area in sorted(members):
        ranked = sorted(members[area], key=lambda place: -place.population)
        clear = len(ranked) == 1 or ranked[0].population > ranked[1].population
        if area in sheet.entities and clear and ranked[0].population > 0:
            sheet.add(area, "largest_city", ranked[0].id)


def add_airports(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Airports with an IATA code: country, division, time zone, and the city served where it is known."""
    wanted, first_level = set(codes), _divisions_by_name()
    for row in airport_rows():
        code = row["country"]
        if code not in wanted:
            continue
        id_ = sheet.entity(
            "airport", row["iata"], row["name"], [row["iata"], row["icao"]], parent=row["city"] or row["subd"]
        )
        sheet.add(id_, "in_country", f"country:{code}")
        division = first_level.get((code, fold(row["subd"]))) if row["subd"] else None
        if division and division.id in sheet.entities:
            sheet.add(id_, "in_subdivision", division.id)
        if row["tz"]:
            zone = current_zone(row["tz"])
            sheet.add(id_, "timezone", timezone(sheet, zone))
        city = _served(row)
        if city:
            sheet.add(id_, "serves_city", add_city(sheet, city))


@cache
def airport_rows() -> list[dict[str, str]]:
    """Airports with an IATA code: international ones first, then by code."""
    with package_file("airportsdata", "airportsdata/airports.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["iata"]]
    return sorted(rows, key=lambda row: ("International" not in row["name"], row["iata"]))


@cache
def _divisions_by_name() -> dict[tuple[str, str], Division]:
    found: dict[tuple[str, str], Division] = {}
    for division in divisions().values():
        if division.first:
            for name in (division.name, *division.aliases):
                found.setdefault((division.country, fold(name)), division)
    return found


def _served(row: dict[str, str]) -> Place | None:
    """The nearest place of the city's name within reach."""
    named = places_named(row["country"], row["city"]) if row["city"] else []
    near = [(_distance_km(place, float(row["lat"]), float(row["lon"])), place) for place in named]
    within = [(distance, place) for distance, place in near if distance <= AIRPORT_REACH_KM]
    return (
        min(within, key=lambda pair: (-(pair[1].population >= LEAST_POPULATION), pair[0]))[1]
        if within
        else None
    )


def _distance_km(place: Place, lat: float, lon: float) -> float:
    north = place.lat - lat
    east = ((place.lon - lon + 180.0) % 360.0 - 180.0) * math.cos(math.radians(lat))
    return 111.2 * math.hypot(north, east)
