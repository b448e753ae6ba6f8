"""The outlines that Atlas draws: countries, states and counties of the United States, and their borders."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import numpy as np
import shapely
from shapely.geometry import shape
from shapely.geometry.base import BaseGeometry

from vispath_lit.data.atlas.countries import countries, land_borders
from vispath_lit.data.atlas.geometry import (
    Border,
    Outline,
    border_towards,
    make_outline,
    point_border,
)
from vispath_lit.data.atlas.packages import open_database, package_file

SMALLEST_PART = 0.0005
"""Islands below this share of a country's largest part are not drawn."""
ENCLAVES = frozenset({"LS", "SM", "VA"})
"""Enclosed by their only neighbour, which therefore lies in no direction."""
UNDIRECTED = frozenset({frozenset({"IL", "PS"}), frozenset({"EH", "MA"})})
"""Neighbours whose border is too scattered, or drawn too coarsely or in dispute, for a direction."""
WATER_BORDERS = frozenset({("IL", "MI"), ("MI", "MN"), ("NY", "RI")})
"""States that meet only in the middle of a lake or sound."""


@cache
def country_outlines() -> dict[str, Outline]:
    """The outlines of countries by code (168 of them: microstates and a few others have none)."""
    folder = package_file("countryinfo", "countryinfo/data")
    found = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        code = (record.get("ISO") or {}).get("alpha2", "")
        features = (record.get("geoJSON") or {}).get("features") or []
        if code in countries() and code != "AQ" and features:
            found[code] = make_outline(code, _large_parts(shape(features[0]["geometry"])))
    return dict(sorted(found.items()))


@cache
def country_borders() -> dict[str, tuple[Border, ...]]:
    """How the land neighbours of each country lie, seen from its middle."""
    outlines = country_outlines()
    found = {}
    for code, neighbours in land_borders().items():
        directed = [] if code in ENCLAVES else [n for n in neighbours if {code, n} not in UNDIRECTED]
        borders = [_country_border(code, neighbour, outlines) for neighbour in directed]
        found[code] = tuple(border for border in borders if border is not None)
    return found


def _country_border(code: str, neighbour: str, outlines: dict[str, Outline]) -> Border | None:
    middle, other = countries()[code].centre, countries()[neighbour].centre
    if code in outlines:
        shape_there = outlines[neighbour].geometry if neighbour in outlines else None
        return border_towards(outlines[code], neighbour, shape_there, other)
    if neighbour in outlines:
        centroid = outlines[neighbour].geometry.centroid
        other = (centroid.x, centroid.y)
    return point_border(middle, neighbour, other) if middle and other else None


def _large_parts(geometry: BaseGeometry) -> BaseGeometry:
    parts = list(geometry.geoms) if hasattr(geometry, "geoms") else [geometry]
    limit = SMALLEST_PART * max(part.area for part in parts)
    return shapely.union_all([part for part in parts if part.area >= limit]) if len(parts) > 1 else geometry


@dataclass(frozen=True, slots=True)
class CountyShape:
    """A county of the United States with its outline in degrees."""

    fips: str
    state: str
    name: str
    geometry: BaseGeometry


@cache
def state_outlines() -> dict[str, Outline]:
    """The outlines of the 50 states and the District of Columbia by postal code."""
    with open_database("bokeh-sampledata", "bokeh_sampledata/_data/geographic_boundaries.db") as database:
        rows = database.execute("select id, geometry from us_states order by id").fetchall()
    return {str(code): make_outline(str(code), shapely.from_wkb(geometry)) for code, geometry in rows}


@cache
def county_shapes() -> dict[str, CountyShape]:
    """The counties of the 50 states and the District of Columbia by FIPS code."""
    states = state_outlines()
    with open_database("bokeh-sampledata", "bokeh_sampledata/_data/geographic_boundaries.db") as database:
        rows = database.execute(
            "select id, state, metadata, geometry from us_counties order by id"
        ).fetchall()
    found = {}
    for fips, state, metadata, geometry in rows:
        if state in states:
            name = json.loads(metadata)["detailed_name"]
            found[str(fips)] = CountyShape(str(fips), str(state), str(name), shapely.from_wkb(geometry))
    return found


@cache
def county_borders() -> dict[str, tuple[Border, ...]]:
    """How neighbouring counties lie: the middle of the vertices that two counties share."""
    shapes = county_shapes()
    return _shared_vertex_borders({fips: county.geometry for fips, county in shapes.items()})


@cache
def state_borders() -> dict[str, tuple[Border, ...]]:
    """How neighbouring states lie: states share the vertices that their counties share."""
    groups: dict[str, list[BaseGeometry]] = defaultdict(list)
    for county in county_shapes().values():
        groups[county.state].append(county.geometry)
    areas = {state: shapely.GeometryCollection(parts) for state, parts in groups.items()}
    found = _shared_vertex_borders(areas)
    return {
        state: tuple(b for b in borders if tuple(sorted((state, b.neighbour))) not in WATER_BORDERS)
        for state, borders in found.items()
    }


def _shared_vertex_borders(areas: dict[str, BaseGeometry]) -> dict[str, tuple[Border, ...]]:
    """Borders of areas whose outlines share vertices; a single shared vertex is a corner, not a border."""
    codes = sorted(areas)
    geometries = [areas[code] for code in codes]
    owner = np.repeat(np.arange(len(codes)), shapely.get_num_coordinates(np.array(geometries)))
    points = np.concatenate([shapely.get_coordinates(geometry) for geometry in geometries])
    _, vertex = np.unique(points.round(7), axis=0, return_inverse=True)
    shared: dict[tuple[int, int], set[int]] = defaultdict(set)
    first_row: dict[int, int] = {}
    holders: dict[int, list[int]] = defaultdict(list)
    for row, (key, area) in enumerate(zip(vertex.ravel().tolist(), owner.tolist(), strict=True)):
        first_row.setdefault(key, row)
        if area not in holders[key]:
            holders[key].append(area)
    for key, members in holders.items():
        for a in members:
            for b in members:
                if a != b:
                    shared[a, b].add(first_row[key])
    found: dict[str, list[Border]] = {code: [] for code in codes}
    for (a, b), rows in sorted(shared.items()):
        if len(rows) >= 2:
            middle = points[sorted(rows)].mean(axis=0)
            centroid = geometries[a].centroid
            border = point_border((centroid.x, centroid.y), codes[b], (float(middle[0]), float(middle[1])))
            found[codes[a]].append(border)
    return {code: tuple(borders) for code, borders in found.items()}
