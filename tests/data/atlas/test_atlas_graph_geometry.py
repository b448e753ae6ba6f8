"""Bearings and sectors of borders, on outlines simple enough to see the answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shapely.geometry import MultiPolygon, Polygon, box

from vispath_lit.data.atlas.flags import colour_name
from vispath_lit.data.atlas.geometry import (
    MARGIN,
    SIZE,
    arc_of,
    bearing_of,
    border_towards,
    make_outline,
    point_border,
    sector_of,
)
from vispath_lit.data.atlas.relations import SECTORS


@given(st.floats(min_value=-720.0, max_value=720.0))
def test_a_sector_is_the_nearest_of_eight_directions(bearing: float) -> None:
    sector, distance = sector_of(bearing)
    offsets = [abs((bearing - 45.0 * k + 180.0) % 360.0 - 180.0) for k in range(8)]
    assert offsets[SECTORS.index(sector)] == pytest.approx(min(offsets), abs=1e-6)
    assert distance == pytest.approx(22.5 - min(offsets), abs=1e-6)


def test_bearings_are_clockwise_from_north_on_a_picture() -> None:
    assert bearing_of((10, 10), (10, 0)) == 0.0
    assert bearing_of((10, 10), (20, 10)) == 90.0
    assert bearing_of((10, 10), (10, 20)) == 180.0
    assert bearing_of((10, 10), (0, 10)) == 270.0


@given(st.floats(min_value=0.0, max_value=359.0), st.floats(min_value=1.0, max_value=170.0))
def test_an_arc_is_found_across_north(start: float, width: float) -> None:
    middle, found = arc_of(np.linspace(start, start + width, 20) % 360.0)
    assert found == pytest.approx(width, abs=1e-6)
    assert abs((middle - start - width / 2.0 + 180.0) % 360.0 - 180.0) < 1e-6


def test_an_outline_fits_its_picture_with_north_up() -> None:
    outline = make_outline("A", box(10.0, 40.0, 20.0, 44.0))
    ring = outline.rings[0]
    assert ring.min() >= MARGIN - 1e-6
    assert ring.max() <= SIZE - MARGIN + 1e-6
    assert outline.frame.pixel(10.0, 44.0)[1] < outline.frame.pixel(10.0, 40.0)[1]
    width, height = np.ptp(ring, axis=0)
    assert width / height == pytest.approx(10.0 * np.cos(np.radians(42.0)) / 4.0)


@pytest.mark.parametrize(
    ("other", "sector"),
    [
        (box(1.0, 0.0, 2.0, 1.0), "east"),
        (box(-1.0, 0.0, 0.0, 1.0), "west"),
        (box(0.0, 1.0, 1.0, 2.0), "north"),
        (box(0.0, -1.0, 1.0, 0.0), "south"),
        (box(1.0, 1.0, 2.0, 2.0), "northeast"),
    ],
)
def test_a_neighbour_lies_where_the_border_is(other: Polygon, sector: str) -> None:
    border = border_towards(make_outline("A", box(0.0, 0.0, 1.0, 1.0)), "B", other, None)
    assert border is not None
    assert border.sector == sector
    assert border.shared


def test_a_crooked_border_counts_by_its_arc_not_by_its_length() -> None:
    """The northern border is a comb in its eastern half, which holds most of its length."""
    teeth = [(0.5 + 0.05 * i, 1.0 - 0.2 * (i % 2)) for i in range(10)]
    land = Polygon([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), *reversed(teeth), (0.0, 1.0)])
    north = box(0.0, -1.0, 1.0, 2.0).difference(land).intersection(box(0.0, 0.5, 1.0, 2.0))
    border = border_towards(make_outline("A", land), "B", north, None)
    assert border is not None
    assert border.sector == "north"


def test_a_land_bent_around_its_neighbour_is_left_across_the_border() -> None:
    crescent = box(0.0, 0.0, 4.0, 8.0).difference(box(1.0, 1.0, 4.0, 7.0))
    outline = make_outline("A", crescent)
    border = border_towards(outline, "B", box(1.0, 1.0, 4.0, 7.0), None)
    assert border is not None
    assert border.sector == "east"


def test_the_mainland_and_not_the_exclave_is_the_origin() -> None:
    land = MultiPolygon([box(0.0, 0.0, 4.0, 4.0), box(-4.0, 0.0, -3.8, 0.2)])
    border = border_towards(make_outline("A", land), "B", box(-5.0, 0.0, -4.0, 0.2), None)
    assert border is not None
    assert border.sector == "west"


def test_without_an_outline_the_central_point_stands_in() -> None:
    outline = make_outline("A", box(0.0, 0.0, 1.0, 1.0))
    border = border_towards(outline, "B", None, (0.5, -3.0))
    assert border is not None
    assert (border.sector, border.shared) == ("south", False)
    assert border_towards(outline, "B", None, None) is None
    assert point_border((179.5, 0.0), "B", (-179.5, 0.0)).sector == "east"


def test_land_across_the_date_line_is_one_piece() -> None:
    land = MultiPolygon([box(178.0, 0.0, 180.0, 1.0), box(-180.0, 0.0, -179.0, 1.0)])
    outline = make_outline("A", land)
    assert len(outline.rings) == 1
    assert outline.frame.pixel(-179.0, 0.5)[0] > outline.frame.pixel(179.0, 0.5)[0]


@pytest.mark.parametrize(
    ("rgb", "name"),
    [
        ([237, 41, 57], "red"),
        ([255, 204, 77], "yellow"),
        ([0, 146, 70], "green"),
        ([0, 35, 149], "blue"),
        ([117, 170, 219], "blue"),
        ([238, 238, 238], "white"),
        ([20, 20, 20], "black"),
        ([255, 136, 62], "orange"),
        ([0, 113, 104], "green"),
    ],
)
def test_shades_have_the_names_that_people_give_them(rgb: list[int], name: str) -> None:
    assert colour_name(rgb) == name
