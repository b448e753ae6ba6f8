"""The picture of a question: a new view of a reference image, never the same bytes.

The ranges are part of the data's fingerprint; changing one makes another data set.
"""

from __future__ import annotations

import io
import math
from dataclasses import asdict, dataclass

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

WHITE = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class ViewRanges:
    """What a view may differ in from its reference image.

    Attributes:
        side: side of the square view in pixels.
        crop: largest share cut off at each side.
        rotation: largest turn in degrees, either way.
        cue_rotation: the same for pictures whose directions carry meaning.
        brightness: lowest and highest factor.
        colour: lowest and highest saturation factor.
        blur: largest Gaussian radius in pixels.
        quality: lowest and highest JPEG quality.
    """

    side: int = 256
    crop: float = 0.12
    rotation: float = 12.0
    cue_rotation: float = 5.0
    brightness: tuple[float, float] = (0.75, 1.25)
    colour: tuple[float, float] = (0.7, 1.3)
    blur: float = 1.5
    quality: tuple[int, int] = (35, 90)

    def as_dict(self) -> dict[str, object]:
        """Plain values, for the fingerprint."""
        return asdict(self)


def on_white(image: Image.Image) -> Image.Image:
    """The whole picture, flattened on white and centred in a square."""
    if image.mode not in ("RGB", "RGBA"):
        image = image.convert("RGBA")
    side = max(image.size)
    canvas = Image.new("RGB", (side, side), WHITE)
    mask = image.getchannel("A") if image.mode == "RGBA" else None
    canvas.paste(image, ((side - image.width) // 2, (side - image.height) // 2), mask)
    return canvas


def turned_and_cropped(
    image: Image.Image, angle: float, box: tuple[float, float, float, float], side: int
) -> Image.Image:
    """A part of a square picture turned about its middle, in one resampling.

    Args:
        angle: degrees counterclockwise.
        box: left, top, right and bottom of the part, as shares of the side.
    """
    left, top, right, bottom = (edge * image.width for edge in box)
    across, down = (right - left) / side, (bottom - top) / side
    cos, sin, middle = math.cos(math.radians(angle)), math.sin(math.radians(angle)), image.width / 2
    x, y = left - middle, top - middle
    row_x = (cos * across, -sin * down, cos * x - sin * y + middle)
    row_y = (sin * across, cos * down, sin * x + cos * y + middle)
    return image.transform(
        (side, side),
        Image.Transform.AFFINE,
        row_x + row_y,
        Image.Resampling.BILINEAR,
        fillcolor=WHITE,
    )


def view(image: Image.Image, seed: int, ranges: ViewRanges, *, cue: bool = False) -> bytes:
    """JPEG bytes of one view; the same picture and seed give the same bytes.

    Args:
        image: reference picture of any mode and size.
        cue: whether directions carry meaning, which narrows the rotation.
    """
    rng = np.random.default_rng(seed)
    limit = ranges.cue_rotation if cue else ranges.rotation
    angle = float(rng.uniform(-limit, limit))
    left, top, right, bottom = rng.uniform(0.0, ranges.crop, size=4)
    brightness, colour = rng.uniform(*ranges.brightness), rng.uniform(*ranges.colour)
    radius = float(rng.uniform(0.0, ranges.blur))
    quality = int(rng.integers(ranges.quality[0], ranges.quality[1] + 1))

    box = (float(left), float(top), float(1 - right), float(1 - bottom))
    picture = turned_and_cropped(on_white(image), angle, box, ranges.side)
    picture = ImageEnhance.Brightness(picture).enhance(float(brightness))
    picture = ImageEnhance.Color(picture).enhance(float(colour))
    picture = picture.filter(ImageFilter.GaussianBlur(radius))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=quality)
    return out.getvalue()
