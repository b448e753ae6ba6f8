"""Outlines of countries and states, and marks on them for what lies inside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cache

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from vispath_lit.data.atlas.facts.gazetteer import Place, first_division, places
from vispath_lit.data.atlas.facts.places import LEAST_POPULATION, airport_rows
from vispath_lit.data.atlas.facts.volcanoes import volcanoes
from vispath_lit.data.atlas.geometry import SIZE, FloatArray, Outline
from vispath_lit.data.atlas.maps import country_outlines, county_shapes, state_outlines
from vispath_lit.data.atlas.pictures import drawing
from vispath_lit.data.atlas.pictures.job import Job

RECTANGLES = frozenset({"CO", "WY"})
CITY_SPACING = 26.0
MARK_SPACING = 34.0
STATE_SPACING = 40.0
"""Pixels between marks on one outline, so that no two locators look alike."""


def outlines(ids: Collection[str]) -> Iterator[Job]:
    """Outlines of countries."""
    for code, outline in country_outlines().items():
        yield Job(f"country:{code}", "outline", "", drawing.outline_picture(outline))


def states(ids: Collection[str]) -> Iterator[Job]:
    """Outlines of states, but for the two that are rectangles."""
    for code, outline in state_outlines().items():
        if code in RECTANGLES:
            continue
        yield Job(f"us_state:US-{code}", "state_outline", "", drawing.outline_picture(outline))


def counties(ids: Collection[str]) -> Iterator[Job]:
    """Counties in their states."""
    if "country:US" not in ids:
        return
    for fips, county in county_shapes().items():
        frame = state_outlines()[county.state].frame
        rings = [frame.pixels(ring) for ring in _rings(county.geometry)]
        mark = drawing.area(drawing.path_data(rings), drawing.MARK)
        yield Job(
            f"county:{fips}",
            "county_locator",
            county.state,
            drawing.overlay(mark),
            ground=_state_ground(county.state),
        )


def cities(ids: Collection[str]) -> Iterator[Job]:
    """Large cities in their country, and in their state for the United States."""
    by_country: dict[str, list[Place]] = defaultdict(list)
    by_state: dict[str, list[Place]] = defaultdict(list)
    for place in sorted(places(), key=lambda place: (-place.population, place.geonames)):
        if place.population >= LEAST_POPULATION:
            by_country[place.country].append(place)
            first = first_division(place)
            if first and first.type == "us_state":
                by_state[first.key.removeprefix("US-")].append(place)
    for code, outline in country_outlines().items():
        for place, x, y in _spread(by_country[code], outline, CITY_SPACING):
            mark = drawing.overlay(drawing.dot(x, y))
            yield Job(place.id, "city_locator", code, mark, ground=_country_ground(code))
    for code, outline in state_outlines().items():
        for place, x, y in _spread(by_state[code], outline, STATE_SPACING):
            mark = drawing.overlay(drawing.dot(x, y))
            yield Job(place.id, "state_city_locator", code, mark, ground=_state_ground(code))


def _spread(ranked: list[Place], outline: Outline, spacing: float) -> list[tuple[Place, float, float]]:
    """Places with their pixels: each at least `spacing` from all that rank before it."""
    kept: list[tuple[Place, float, float]] = []
    for place in ranked:
        x, y = outline.frame.pixel(place.lon, place.lat)
        inside = 0 <= x < SIZE and 0 <= y < SIZE
        if inside and all((x - a) ** 2 + (y - b) ** 2 >= spacing**2 for _, a, b in kept):
            kept.append((place, x, y))
    return kept


def airports(ids: Collection[str]) -> Iterator[Job]:
    """Airports in their country, international ones first."""
    grouped: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for row in airport_rows():
        grouped[row["country"]].append((f"airport:{row['iata']}", float(row["lat"]), float(row["lon"])))
    yield from _marks("airport_locator", grouped, drawing.cross)


def volcano_marks(ids: Collection[str]) -> Iterator[Job]:
    """Volcanoes in their country, highest first."""
    grouped: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for volcano in sorted(volcanoes(), key=lambda volcano: (-volcano.elevation, volcano.number)):
        if len(volcano.countries) == 1:
            grouped[volcano.countries[0]].append((volcano.id, volcano.lat, volcano.lon))
    yield from _marks("volcano_locator", grouped, drawing.triangle)


def _marks(
    kind: str, grouped: dict[str, list[tuple[str, float, float]]], mark: Callable[[float, float], str]
) -> Iterator[Job]:
    for code, outline in country_outlines().items():
        kept: list[tuple[float, float]] = []
        for id_, lat, lon in grouped.get(code, ()):
            x, y = outline.frame.pixel(lon, lat)
            inside = 8 <= x < SIZE - 8 and 8 <= y < SIZE - 8
            if inside and all((x - a) ** 2 + (y - b) ** 2 >= MARK_SPACING**2 for a, b in kept):
                kept.append((x, y))
                yield Job(id_, kind, code, drawing.overlay(mark(x, y)), ground=_country_ground(code))


@cache
def _country_ground(code: str) -> str:
    return drawing.svg(drawing.area(drawing.path_data(country_outlines()[code].rings), drawing.PALE_LAND))


@cache
def _state_ground(code: str) -> str:
    return drawing.svg(drawing.area(drawing.path_data(state_outlines()[code].rings), drawing.PALE_LAND))


def _rings(geometry: BaseGeometry) -> list[FloatArray]:
    polygons = shapely.get_parts(geometry)
    return [
        np.asarray(shapely.get_coordinates(ring), dtype=np.float64)
        for polygon in polygons
        for ring in (polygon.exterior, *polygon.interiors)
    ]
