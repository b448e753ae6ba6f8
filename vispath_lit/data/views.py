"""New views of a picture: what a photograph of the same thing may differ in, to train recognition on."""

from __future__ import annotations

import io
import math
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

from vispath_lit.errors import ConfigError

WHITE = (255, 255, 255)


@dataclass(frozen=True, slots=True)
class ViewSettings:
    """What a view may differ in from its picture; each value is drawn evenly from its range.

    Attributes:
        side: of the square view, in pixels.
        crop: largest share cut off at each side.
        rotation: largest turn in degrees, either way.
        brightness: largest change of brightness, as a share.
        colour: largest change of saturation, as a share.
        blur: largest Gaussian radius in pixels.
        quality: lowest JPEG quality; the highest is 95.
    """

    side: int = 256
    crop: float = 0.12
    rotation: float = 12.0
    brightness: float = 0.25
    colour: float = 0.3
    blur: float = 1.5
    quality: int = 35

    def __post_init__(self) -> None:
        ranges = {
            "side": (32, 1024),
            "crop": (0, 0.4),
            "rotation": (0, 180),
            "brightness": (0, 0.9),
            "colour": (0, 1),
            "blur": (0, 16),
            "quality": (5, 95),
        }
        for key, (low, high) in ranges.items():
            if not low <= getattr(self, key) <= high:
                raise ConfigError(f"views.{key} is {getattr(self, key)}; expected {low} to {high}")


def view(image: Image.Image, settings: ViewSettings, rng: np.random.Generator) -> Image.Image:
    """One view of an RGB picture; the same picture and random numbers give the same pixels."""
    angle = rng.uniform(-settings.rotation, settings.rotation)
    left, top, right, bottom = rng.uniform(0, settings.crop, size=4)
    light, colour = 1 + rng.uniform(-1, 1, size=2) * (settings.brightness, settings.colour)
    radius, quality = rng.uniform(0, settings.blur), rng.integers(settings.quality, 96)
    seen = turned(image, angle, (left, top, 1 - right, 1 - bottom), settings.side)
    seen = ImageEnhance.Brightness(seen).enhance(float(light))
    seen = ImageEnhance.Color(seen).enhance(float(colour))
    seen = seen.filter(ImageFilter.GaussianBlur(float(radius)))
    file = io.BytesIO()
    seen.save(file, "JPEG", quality=int(quality))
    return Image.open(file).convert("RGB")


def turned(
    image: Image.Image, angle: float, box: tuple[float, float, float, float], side: int
) -> Image.Image:
    """A part of the picture, centred on a white square and turned about its middle, in one resampling.

    Args:
        angle: in degrees.
        box: left, top, right and bottom of the part, as shares of the square.
        side: of the result in pixels.
    """
    whole = max(image.size)
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    across, down = (box[2] - box[0]) * whole / side, (box[3] - box[1]) * whole / side
    x, y = (box[0] - 0.5) * whole, (box[1] - 0.5) * whole  # of the part's corner, from the middle
    rows = (
        (cos * across, -sin * down, cos * x - sin * y + image.width / 2),
        (sin * across, cos * down, sin * x + cos * y + image.height / 2),
    )
    return image.transform(
        (side, side),
        Image.Transform.AFFINE,
        rows[0] + rows[1],
        Image.Resampling.BILINEAR,
        fillcolor=WHITE,
    )
