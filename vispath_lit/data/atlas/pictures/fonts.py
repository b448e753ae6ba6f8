"""Which of the packaged fonts can write a text, and how large it may be written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from PIL import ImageFont

from vispath_lit.data.atlas.packages import package_file

LARGEST = 110.0
_NO_TEXT = frozenset({"NotoEmoji[wght].ttf", "NotoSans-Italic[wght].ttf", "NotoSansSymbols[wght].ttf"})
_MISSING = "\U0010fffe"


@dataclass(frozen=True, slots=True)
class Face:
    """One font file with the family name that drawings use."""

    path: str
    family: str


@cache
def faces() -> list[Face]:
    """The fonts for text: the one for European writing first, then by name."""
    folder = package_file("manimgx-fonts", "manimgx_fonts")
    paths = [path for path in sorted(folder.glob("*.ttf")) if path.name not in _NO_TEXT]
    paths.sort(key=lambda path: path.name != "NotoSans[wght].ttf")
    return [Face(str(path), str(_font(str(path)).getname()[0])) for path in paths]


def face_for(text: str) -> Face | None:
    """The first font that has a glyph for every character."""
    return next((face for face in faces() if all(_has(face.path, c) for c in text if not c.isspace())), None)


def fitting_size(text: str, face: Face, width: float) -> float:
    """The font size in pixels at which the text is at most `width` wide."""
    return min(LARGEST, 100.0 * width / max(float(_font(face.path).getlength(text)), 1.0))


@cache
def _font(path: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(path, 100)


@cache
def _has(path: str, character: str) -> bool:
    """Whether the glyph differs from the one that stands for a missing character."""
    if character in "\u200c\u200d\u200e\u200f":
        return True
    return bool(any(_shape(path, character)[1])) and _shape(path, character) != _shape(path, _MISSING)


@cache
def _shape(path: str, character: str) -> tuple[tuple[int, int], bytes]:
    mask = _font(path).getmask(character)
    return mask.size, bytes(mask)
