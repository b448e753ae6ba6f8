"""Outlines as they are drawn, and where on them the neighbours lie.

A map is equirectangular with north up: longitudes are scaled by the cosine of the outline's middle
latitude, so that a small piece of the map has true angles. A *bearing* is measured on that map, in
degrees clockwise from north. Seen from an *origin* inside A, the border that A shares with B spans an arc;
the bearing of B is the arc's middle (so the United States has Canada to the north, however crooked the
Great Lakes are), and its sector of 45 degrees gives the relation `borders_<sector>`. The origin is the
centroid of that large part of A (mainland, big island) which has most of the border. Where A is bent
around the border (Norway's centroid lies in Sweden) and the direction in which one leaves A across the
border points the other way, that one counts. Where the outlines share no point, A's stretch nearest to B
stands in; where B has no outline, or is far off, B's central point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely
from shapely.geometry.base import BaseGeometry

from vispath_lit.data.atlas.relations import SECTORS

FloatArray = npt.NDArray[np.float64]

SIZE = 288
"""Side of every picture in pixels."""
MARGIN = 22
NEAR_DEGREES = 0.3
FAR_DEGREES = 2.0
LARGE_PART = 0.1
SPACING = 0.004
"""Distance of the points by which a border is measured, as a share of the outline's length."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Degrees to pixels: `x = left + (lon - west) lon_scale`, `y = top + (north - lat) scale`."""

    west: float
    north: float
    left: float
    top: float
    lon_scale: float
    scale: float
    wrap: bool

    def pixels(self, lonlat: FloatArray) -> FloatArray:
        """`[n, 2]` degrees to `[n, 2]` pixels, origin at the upper left."""
        lon = np.where(self.wrap & (lonlat[:, 0] < 0), lonlat[:, 0] + 360.0, lonlat[:, 0])
        x = self.left + (lon - self.west) * self.lon_scale
        y = self.top + (self.north - lonlat[:, 1]) * self.scale
        return np.stack([x, y], axis=1)

    def pixel(self, lon: float, lat: float) -> tuple[float, float]:
        """One point in pixels."""
        x, y = self.pixels(np.array([[lon, lat]]))[0].tolist()
        return x, y


@dataclass(frozen=True, slots=True)
class Outline:
    """An area as a picture shows it.

    Attributes:
        geometry: polygons in degrees; longitudes run on past 180 where the area crosses it.
        rings: outer and inner rings in pixels, each `[n, 2]`, closed, outer ones first by area.
        centroid: area-weighted, in pixels.
    """

    code: str
    geometry: BaseGeometry
    frame: Frame
    rings: tuple[FloatArray, ...]
    centroid: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Border:
    """How a neighbour lies, seen from the middle of an outline.

    Attributes:
        sector: one of `SECTORS`.
        bearing: degrees clockwise from north, in [0, 360).
        edge_distance: degrees to the nearer edge of the sector, in [0, 22.5].
        origin: pixel from which the bearing is measured.
        anchor: pixel on the outline where an arrow towards the neighbour belongs.
        shared: whether the two outlines share points there; else the border was estimated.
        arc: degrees that the border spans, seen from the origin; 0 where it was estimated.
    """

    neighbour: str
    sector: str
    bearing: float
    edge_distance: float
    origin: tuple[float, float]
    anchor: tuple[float, float]
    shared: bool
    arc: float


def sector_of(bearing: float) -> tuple[str, float]:
    """The compass sector of a bearing and the distance to its nearer edge, both in degrees."""
    index = math.floor(((bearing % 360.0) + 22.5) / 45.0) % 8
    offset = (bearing - 45.0 * index + 180.0) % 360.0 - 180.0
    return SECTORS[index], 22.5 - abs(offset)


def bearing_of(start: Sequence[float], end: Sequence[float]) -> float:
    """Degrees clockwise from north from one pixel to another."""
    return math.degrees(math.atan2(end[0] - start[0], start[1] - end[1])) % 360.0


def make_outline(code: str, geometry: BaseGeometry, *, size: int = SIZE, margin: int = MARGIN) -> Outline:
    """Fits polygons (degrees) into a square picture, north up, keeping their proportions."""
    west, _, east, _ = geometry.bounds
    wrap = east - west > 180.0
    if wrap:
        parts = shapely.get_parts(shapely.transform(geometry, _past_the_date_line))
        geometry = shapely.union_all(parts)  # joins what the date line parted
    frame = _fit(geometry, size, margin, wrap)
    polygons = sorted(_polygons(geometry), key=lambda p: -p.area)
    lines = [p.exterior for p in polygons] + [ring for p in polygons for ring in p.interiors]
    rings = tuple(frame.pixels(shapely.get_coordinates(line)) for line in lines)
    x, y = frame.pixel(geometry.centroid.x, geometry.centroid.y)
    return Outline(code, geometry, frame, rings, (x, y))


def border_towards(
    outline: Outline, neighbour: str, other: BaseGeometry | None, middle: tuple[float, float] | None
) -> Border | None:
    """Where `neighbour` lies as seen from `outline`.

    Args:
        other: the neighbour's outline in degrees, where it has one.
        middle: its central point in degrees, for when it has none, or one that is far off.

    Returns:
        None where neither tells anything.
    """
    if other is not None and outline.frame.wrap:
        other = shapely.transform(other, _past_the_date_line)
    if other is not None and (middle is None or outline.geometry.distance(other) < FAR_DEGREES):
        return _measured(outline, neighbour, other)
    return _estimated(outline, neighbour, outline.frame.pixel(*middle)) if middle is not None else None


def point_border(start: tuple[float, float], neighbour: str, target: tuple[float, float]) -> Border:
    """The direction from one central point (degrees) to another, for an area without an outline."""
    east = ((target[0] - start[0] + 180.0) % 360.0 - 180.0) * math.cos(math.radians(start[1]))
    bearing = math.degrees(math.atan2(east, target[1] - start[1])) % 360.0
    return Border(neighbour, *_sector(bearing), (0.0, 0.0), (0.0, 0.0), False, 0.0)


def _sector(bearing: float) -> tuple[str, float, float]:
    sector, distance = sector_of(bearing)
    return sector, bearing, distance


def _measured(outline: Outline, neighbour: str, other: BaseGeometry) -> Border:
    """From the part with most of the border to the middle of the border's arc."""
    distance = outline.geometry.distance(other)
    shared = distance < 1e-9
    limit = 1e-9 if shared else distance + NEAR_DEGREES
    spacing = SPACING * outline.geometry.boundary.length
    parts = sorted(_polygons(outline.geometry), key=lambda part: -part.area)
    near = [_near_points(part, other, spacing, limit) for part in parts]
    large = [i for i, part in enumerate(parts) if part.area >= LARGE_PART * parts[0].area]
    main = max(large, key=lambda i: (len(near[i]), parts[i].area))
    facing = near[main] if len(near[main]) else np.concatenate(near)
    points = outline.frame.pixels(facing)
    origin = outline.frame.pixel(parts[main].centroid.x, parts[main].centroid.y)
    bearings = np.array([bearing_of(origin, point) for point in points.tolist()])
    bearing, arc = arc_of(bearings)
    if arc > 180.0 or not parts[main].contains(parts[main].centroid):
        way_out = _way_out(parts[main], other, spacing, outline.frame)
        if way_out is not None and abs((way_out - bearing + 180.0) % 360.0 - 180.0) > 90.0:
            bearing = way_out
    off = np.abs((bearings - bearing + 180.0) % 360.0 - 180.0)
    anchor = points[off.argmin()]
    return Border(neighbour, *_sector(bearing), origin, (float(anchor[0]), float(anchor[1])), shared, arc)


def arc_of(bearings: FloatArray) -> tuple[float, float]:
    """Middle and width (degrees) of the shortest arc that holds all bearings: all but their widest gap."""
    ordered = np.unique(bearings % 360.0)
    gaps = np.diff(np.append(ordered, ordered[0] + 360.0))
    widest = int(gaps.argmax())
    start = ordered[(widest + 1) % len(ordered)]
    width = 360.0 - float(gaps[widest])
    return float((start + width / 2.0) % 360.0), width


def _way_out(part: shapely.Polygon, other: BaseGeometry, spacing: float, frame: Frame) -> float | None:
    """Bearing of the summed outward normals of the edge that is shared with `other`; None without one."""
    ring = shapely.segmentize(shapely.geometry.polygon.orient(part).exterior, spacing)
    corners = shapely.get_coordinates(ring)
    shared = shapely.distance(shapely.points((corners[1:] + corners[:-1]) / 2.0), other) < 1e-9
    along = np.diff(frame.pixels(corners), axis=0)[shared].sum(axis=0)
    # The ring runs counterclockwise with y up, so outward is to the right; pixels have y down.
    outward = (float(-along[1]), float(along[0]))
    return bearing_of((0.0, 0.0), outward) if math.hypot(*outward) > 1e-9 else None


def _near_points(part: shapely.Polygon, other: BaseGeometry, spacing: float, limit: float) -> FloatArray:
    """`[n, 2]` evenly spaced points of the part's edge within `limit` degrees of `other`."""
    points = shapely.get_coordinates(shapely.segmentize(part.boundary, spacing))
    return np.unique(points[shapely.distance(shapely.points(points), other) <= limit], axis=0)


def _estimated(outline: Outline, neighbour: str, target: tuple[float, float]) -> Border:
    """From the part nearest to a neighbour's central point (pixels) to that point."""
    rings = outline.rings[: len(list(_polygons(outline.geometry)))]
    gaps = [np.linalg.norm(ring - np.array(target), axis=1) for ring in rings]
    nearest = min(range(len(gaps)), key=lambda i: float(gaps[i].min()))
    anchor = rings[nearest][gaps[nearest].argmin()]
    origin = _centroid(rings[nearest])
    sector = _sector(bearing_of(origin, target))
    return Border(neighbour, *sector, origin, (float(anchor[0]), float(anchor[1])), False, 0.0)


def _centroid(ring: FloatArray) -> tuple[float, float]:
    middle = shapely.Polygon(ring).centroid
    return float(middle.x), float(middle.y)


def _fit(geometry: BaseGeometry, size: int, margin: int, wrap: bool) -> Frame:
    west, south, east, north = geometry.bounds
    squeeze = math.cos(math.radians((south + north) / 2.0))
    width, height = (east - west) * squeeze, north - south
    scale = (size - 2 * margin) / max(width, height)
    left, top = (size - width * scale) / 2.0, (size - height * scale) / 2.0
    return Frame(west, north, left, top, squeeze * scale, scale, wrap)


def _polygons(geometry: BaseGeometry) -> Iterable[shapely.Polygon]:
    parts: Iterable[shapely.Polygon] = geometry.geoms if hasattr(geometry, "geoms") else (geometry,)
    return parts


def _past_the_date_line(lonlat: FloatArray) -> FloatArray:
    return np.stack([np.where(lonlat[:, 0] < 0, lonlat[:, 0] + 360.0, lonlat[:, 0]), lonlat[:, 1]], axis=1)
