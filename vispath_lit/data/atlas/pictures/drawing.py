"""Pictures as SVG text: maps with a mark, written words, cells of a table."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

import numpy as np

from vispath_lit.data.atlas.geometry import SIZE, FloatArray, Outline

LAND = "#4f7cac"
PALE_LAND = "#c9d6e3"
COAST = "#27415e"
MARK = "#c0392b"
INK = "#1c1c1c"


def svg(body: str, size: int = SIZE) -> str:
    """A square drawing on white."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 {size} {size}">'
        f'<rect width="{size}" height="{size}" fill="#ffffff"/>{body}</svg>'
    )


def framed(drawing: str, margin: int = 16) -> str:
    """A square drawing of its own, smaller, with white around it."""
    inner = re.sub(
        r"<svg ",
        f'<svg x="{margin}" y="{margin}" width="{SIZE - 2 * margin}" height="{SIZE - 2 * margin}" ',
        drawing,
        count=1,
    )
    return svg(inner)


def overlay(body: str, size: int = SIZE) -> str:
    """A square drawing without a ground."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" '
        f'viewBox="0 0 {size} {size}">{body}</svg>'
    )


def path_data(rings: Iterable[FloatArray]) -> str:
    """Closed rings of pixels as path commands; points within half a pixel of the last are dropped."""
    return "".join(f"M{_points(_thinned(ring))}Z" for ring in rings)


def _points(ring: FloatArray) -> str:
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in ring.tolist())


def _thinned(ring: FloatArray) -> FloatArray:
    cells = np.round(ring * 2.0)
    keep = np.append(True, np.any(cells[1:] != cells[:-1], axis=1))
    thinned: FloatArray = ring[keep]
    return thinned


def area(data: str, fill: str) -> str:
    """A filled area with its coast."""
    return (
        f'<path d="{data}" fill="{fill}" fill-rule="evenodd" stroke="{COAST}" stroke-width="1.5" '
        'stroke-linejoin="round"/>'
    )


def outline_picture(outline: Outline) -> str:
    """The filled outline."""
    return svg(area(path_data(outline.rings), LAND))


def dot(x: float, y: float) -> str:
    """A dot with a ring, for a city."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="none" stroke="{MARK}" stroke-width="2.5"/>'
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{MARK}"/>'
    )


def cross(x: float, y: float) -> str:
    """An upright cross, for an airport."""
    d = f"M{x - 10:.1f},{y:.1f}H{x + 10:.1f}M{x:.1f},{y - 10:.1f}V{y + 10:.1f}"
    return f'<path d="{d}" stroke="#5b2a86" stroke-width="5.5" fill="none"/>'


def triangle(x: float, y: float) -> str:
    """A triangle, for a volcano."""
    d = f"M{x - 10:.1f},{y + 8:.1f}L{x:.1f},{y - 11:.1f}L{x + 10:.1f},{y + 8:.1f}Z"
    return f'<path d="{d}" fill="#d35400" stroke="#5e2600" stroke-width="1.5"/>'


def words(text: str, family: str, font_size: float) -> str:
    """One line of text in the middle of the picture."""
    return svg(_text(text, family, font_size, SIZE / 2, SIZE / 2 + 0.35 * font_size))


def letter_grid(letters: Sequence[str], family: str, columns: int = 3) -> str:
    """Single letters in a square of cells."""
    cell = SIZE / columns
    font_size = 0.5 * cell
    body = [
        _text(
            letter,
            family,
            font_size,
            cell * (i % columns + 0.5),
            cell * (i // columns + 0.5) + 0.35 * font_size,
        )
        for i, letter in enumerate(letters)
    ]
    return svg("".join(body))


def _text(text: str, family: str, font_size: float, x: float, y: float) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-family="{family}" '
        f'font-size="{font_size:.1f}" fill="{INK}">{html.escape(text)}</text>'
    )


def table(cells: Iterable[tuple[int, int]], fill: str, columns: int = 18, rows: int = 10) -> str:
    """Cells (column and row, from 0) of a table that fills the width of the picture."""
    side = (SIZE - 20) / columns
    top = (SIZE - rows * side) / 2
    return "".join(
        f'<rect x="{10 + column * side:.1f}" y="{top + row * side:.1f}" width="{side:.1f}" '
        f'height="{side:.1f}" fill="{fill}" stroke="{COAST}" stroke-width="1"/>'
        for column, row in cells
    )
