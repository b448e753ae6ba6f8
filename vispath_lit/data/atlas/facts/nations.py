"""Countries: their names, places, neighbours, codes, climate, rivers, lakes and peaks."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

from vispath_lit.data.atlas.countries import (
    Country,
    countries,
    country_code,
    json_list,
    land_borders,
)
from vispath_lit.data.atlas.factbook import clean, lengths, profiles, without_brackets
from vispath_lit.data.atlas.flags import flag_palettes, flag_words
from vispath_lit.data.atlas.maps import country_borders
from vispath_lit.data.atlas.names import names
from vispath_lit.data.atlas.packages import open_database
from vispath_lit.data.atlas.sheet import FactSheet, slug

OVERSEAS = {"AX": "FI", "BQ": "NL", "GF": "FR", "GP": "FR", "MQ": "FR", "RE": "FR", "UM": "US", "YT": "FR"}
"""Territories without a Factbook profile of their own."""
_OWNERS = (
    (r"\b(UK|British)\b", "GB"), (r"\bFrance\b", "FR"), (r"\bUS\b", "US"), (r"\bAustralia\b", "AU"),
    (r"\bKingdom of the Netherlands\b", "NL"), (r"\bDenmark\b", "DK"), (r"\bChina\b", "CN"),
    (r"\bNorway\b", "NO"), (r"\bNew Zealand\b", "NZ"),
)  # fmt: skip


def add_countries(sheet: FactSheet, only: frozenset[str] | None = None) -> None:
    """Adds the countries (all, or `only` these codes) as entities, before any other fact.

    Neighbours of the chosen countries are entities too; their own facts are not added.
    """
    for code, country in countries().items():
        profile = profiles().get(code)
        sheet.entity(
            "country",
            code,
            country.label,
            country.aliases,
            description=_shortened(profile.text("Introduction", "Background")) if profile else "",
            weight=float(country.population),
            flag_description=flag_words(code) if profile else "",
        )
    for code, country in countries().items():
        if only is None or code in only:
            _add_place(sheet, country)


def _shortened(text: str, limit: int = 900) -> str:
    """Whole sentences up to `limit` characters."""
    if len(text) <= limit:
        return text
    end = text.rfind(". ", 0, limit)
    return text[: end + 1] if end > 0 else text[:limit]


def _add_place(sheet: FactSheet, country: Country) -> None:
    subject = f"country:{country.code}"
    continent = sheet.concept("continent", country.continent)
    sheet.add(subject, "continent", continent)
    if country.subregion:
        subregion = sheet.concept("subregion", country.subregion)
        sheet.add(subject, "subregion", subregion)
        sheet.add(subregion, "subregion_of", continent)
    owner = territory_owner(country.code)
    if owner:
        sheet.add(subject, "territory_of", f"country:{owner}")


def territory_owner(code: str) -> str | None:
    """The country that a territory belongs to; None for a country of its own."""
    if code in OVERSEAS:
        return OVERSEAS[code]
    status = profiles()[code].text("Government", "Dependency status") if code in profiles() else ""
    return next((owner for pattern, owner in _OWNERS if status and re.search(pattern, status)), None)


def add_borders(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Directed borders, and by the Factbook's lengths the longest and the shortest one."""
    for code in codes:
        subject = f"country:{code}"
        borders = country_borders()[code]
        for border in borders:
            sheet.add(subject, f"borders_{border.sector}", f"country:{border.neighbour}")
        measured = _border_lengths(code)
        if len(measured) > 1:
            ranked = sorted(measured.items(), key=lambda pair: (-pair[1], pair[0]))
            sheet.add(subject, "longest_border_with", f"country:{ranked[0][0]}")
            if set(measured) == set(land_borders()[code]):
                sheet.add(subject, "shortest_border_with", f"country:{ranked[-1][0]}")


def _border_lengths(code: str) -> dict[str, float]:
    """Neighbours with the length of the border in km; known neighbours only."""
    text = (
        profiles()[code].text("Geography", "Land boundaries", "border countries")
        if code in profiles()
        else ""
    )
    found: dict[str, float] = {}
    for name, length in lengths(text):
        other = country_code(name)
        if other is not None and other in land_borders()[code]:
            found[other] = found.get(other, 0.0) + length
    return found


def add_flag_colours(sheet: FactSheet, codes: Iterable[str]) -> None:
    """The colours that the drawn flag shows (see `flags`)."""
    for code in codes:
        for patch in flag_palettes().get(code, ()):
            sheet.add(f"country:{code}", "flag_colour", sheet.concept("colour", patch.name))


def add_codes(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Calling codes, internet domains, time zones."""
    zones = _zones()
    for code in codes:
        subject, row = f"country:{code}", countries()[code].row
        if row is None:
            continue
        calling = json_list(row["calling_codes"])
        if len(calling) == 1 and " " not in calling[0]:
            sheet.add(
                subject, "calling_code", sheet.concept("calling_code", calling[0], [calling[0].lstrip("+")])
            )
        if row["top_level_domain"]:
            sheet.add(subject, "internet_domain", sheet.concept("internet_domain", row["top_level_domain"]))
        for zone, offset in zones.get(code, ()):
            sheet.add(subject, "timezone", timezone(sheet, zone, offset))


def current_zone(name: str) -> str:
    """The present name of a time zone."""
    return names("time_zones").get(name, name)


def timezone(sheet: FactSheet, name: str, offset: float | None = None) -> str:
    """A time zone by its database name ("Europe/Vienna"), with its standard offset where known."""
    city = name.rsplit("/", 1)[-1].replace("_", " ")
    id_ = sheet.entity("timezone", name, name, [f"{city} time"])
    if offset is not None:
        sign, minutes = "-" if offset < 0 else "+", round(abs(offset) * 60)
        label = f"UTC{sign}{minutes // 60:02d}:{minutes % 60:02d}"
        sheet.add(id_, "utc_offset", sheet.entity("utc_offset", label, label))
    return id_


def _zones() -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for row in country_rows("country_timezone"):
        offset = min(float(row["january_utc_offset_hours"]), float(row["july_utc_offset_hours"]))
        found.setdefault(row["alpha2"], []).append((str(row["timezone_id"]), offset))
    return found


def single_zones() -> dict[str, str]:
    """The one time zone of each country that has no more."""
    return {code: zones[0][0] for code, zones in _zones().items() if len(zones) == 1}


def add_climate(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Köppen-Geiger zones by their share of the area; the largest is the main one."""
    wanted = set(codes)
    largest: dict[str, tuple[float, str]] = {}
    for row in country_rows("country_climate_zone"):
        if row["alpha2"] not in wanted or float(row["share_percent"]) < 5.0:
            continue
        zone = sheet.entity("climate", row["code"], f"{row['name']} climate", [row["code"], row["name"]])
        sheet.add(zone, "climate_group", sheet.concept("climate_group", row["climate_group"]))
        subject = f"country:{row['alpha2']}"
        sheet.add(subject, "climate_zone", zone)
        largest[subject] = max(largest.get(subject, (0.0, "")), (float(row["share_percent"]), zone))
    for subject, (_, zone) in sorted(largest.items()):
        sheet.add(subject, "main_climate", zone)


def add_heights(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Highest and lowest points that have a name; namesakes of another height are other places."""
    wanted = set(codes)
    for row in country_rows("country_physical"):
        code = str(row["alpha2"])
        if code not in wanted:
            continue
        for word, type_ in (("highest", "peak"), ("lowest", "low_point")):
            text = str(row[f"{word}_point_name"] or "")
            name = _place_name(text)
            if name:
                key = f"{slug(name)}-{round(row[f'{word}_point_elevation_m'] or 0)}"
                place = sheet.entity(type_, key, name, _bracketed(text), parent=countries()[code].label)
                sheet.add(f"country:{code}", f"{word}_point", place)


def _place_name(text: str) -> str:
    """A proper name, or nothing for "unnamed elevation 1.4 km east of ..." and other descriptions."""
    name = re.split(r";|,| along the | on | slightly | at | in the | near ", without_brackets(clean(text)))[0]
    bad = re.search(r"unnamed|unknown|location|\d| of the | border|junction|/| and ", name, re.IGNORECASE)
    return "" if bad or not 2 < len(name) < 45 or not name[0].isupper() else name.strip()


def _bracketed(text: str) -> list[str]:
    """A short second name in brackets: "Donau (Danube)"."""
    match = re.search(r"\(([^()]{3,30})\)", text)
    return [match[1]] if match and match[1][0].isupper() and " is " not in match[1] else []


def country_rows(table: str) -> list[sqlite3.Row]:
    """All rows of a table of the country list, each with its country's `alpha2`, in a fixed order."""
    with open_database("pyworldatlas", "pyworldatlas/data/atlas.sqlite3") as database:
        return database.execute(
            f"select c.alpha2, t.* from {table} t join country c on c.id = t.country_id order by 1, 2, 3, 4"
        ).fetchall()
