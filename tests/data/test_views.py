from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vispath_lit.data.views import ViewSettings, turned, view
from vispath_lit.errors import ConfigError

STILL = ViewSettings(side=64, crop=0, rotation=0, brightness=0, colour=0, blur=0, quality=95)


def picture(size: tuple[int, int] = (64, 64)) -> Image.Image:
    image = Image.new("RGB", size, "white")
    ImageDraw.Draw(image).rectangle((8, 8, size[0] // 2, size[1] // 2), fill="blue")
    return image


def difference(one: Image.Image, other: Image.Image) -> float:
    return float(np.abs(np.asarray(one, dtype=float) - np.asarray(other, dtype=float)).mean())


def test_a_seed_fixes_the_pixels() -> None:
    def made(seed: int) -> Image.Image:
        return view(picture(), ViewSettings(), np.random.default_rng(seed))

    assert made(0).tobytes() == made(0).tobytes() != made(1).tobytes()
    assert made(0).size == (256, 256)


def test_without_any_change_a_picture_stays_itself() -> None:
    seen = view(picture(), STILL, np.random.default_rng(0))
    assert difference(seen, picture()) < 2


def test_a_part_is_cut_and_turned_about_the_middle() -> None:
    assert difference(turned(picture(), 0, (0, 0, 1, 1), 64), picture()) == 0
    quarter = np.asarray(turned(picture(), 0, (0, 0, 0.5, 0.5), 64))
    assert quarter[40, 40].tolist() == [0, 0, 255]
    upside_down = np.asarray(turned(picture(), 180, (0, 0, 1, 1), 64))
    assert upside_down[45, 45].tolist() == [0, 0, 255]
    assert upside_down[20, 20].tolist() == [255, 255, 255]


def test_a_wide_picture_is_centred_on_white() -> None:
    wide = np.asarray(turned(Image.new("RGB", (64, 16), "black"), 0, (0, 0, 1, 1), 64))
    assert wide[:20].min() == wide[-20:].min() == 255
    assert wide[28:36].max() == 0


@pytest.mark.parametrize("wrong", [{"crop": 0.5}, {"side": 8}, {"quality": 0}, {"rotation": -1.0}])
def test_a_value_out_of_range_is_named(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"views.{next(iter(wrong))}"):
        ViewSettings(**wrong)  # type: ignore[arg-type]
