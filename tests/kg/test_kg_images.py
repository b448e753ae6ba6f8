from __future__ import annotations

import contextlib
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vispath_lit.errors import DataError
from vispath_lit.kg.images import MAX_SIDE, check_image, load_image


def png_header(width: int, height: int) -> bytes:
    data = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
    header = struct.pack(">I", len(data)) + b"IHDR" + data + struct.pack(">I", zlib.crc32(b"IHDR" + data))
    return b"\x89PNG\r\n\x1a\n" + header + struct.pack(">I", 1000) + b"IDAT" + b"x" * 8


def test_transparency_lies_on_white(tmp_path: Path) -> None:
    layer = Image.new("RGBA", (2, 1), (0, 0, 255, 255))
    layer.putpixel((1, 0), (0, 0, 255, 0))
    palette = layer.quantize(4)
    grey = Image.new("LA", (2, 1), (0, 255))
    grey.putpixel((1, 0), (0, 0))
    for name, image, ink in (
        ("rgba", layer, (0, 0, 255)),
        ("p", palette, (0, 0, 255)),
        ("la", grey, (0, 0, 0)),
    ):
        image.save(tmp_path / f"{name}.png")
        loaded = load_image(tmp_path / f"{name}.png")
        assert loaded.mode == "RGB"
        assert [loaded.getpixel((0, 0)), loaded.getpixel((1, 0))] == [ink, (255, 255, 255)], name


def test_a_transparent_colour_lies_on_white(tmp_path: Path) -> None:
    image = Image.new("RGB", (2, 1), (10, 20, 30))
    image.putpixel((1, 0), (1, 2, 3))
    image.save(tmp_path / "a.png", transparency=(1, 2, 3))
    loaded = load_image(tmp_path / "a.png")
    assert [loaded.getpixel((0, 0)), loaded.getpixel((1, 0))] == [(10, 20, 30), (255, 255, 255)]


def test_sixteen_bit_grey_is_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 32768, 65535]], dtype=np.uint16)).save(tmp_path / "a.png")
    loaded = np.asarray(load_image(tmp_path / "a.png"))
    assert loaded.shape == (1, 3, 3)
    assert loaded[0, :, 0].tolist() == [0, 127, 255]


@pytest.mark.parametrize("mode", ["1", "L", "P", "CMYK", "YCbCr", "F", "I"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    Image.new("L", (5, 4), 255).convert(mode).save(tmp_path / "a.tif")
    loaded = load_image(tmp_path / "a.tif")
    assert (loaded.mode, loaded.size) == ("RGB", (5, 4))
    assert np.asarray(loaded).min() >= 254


def test_exif_turns_the_picture_upright(tmp_path: Path) -> None:
    image = Image.new("RGB", (40, 20), "white")
    image.paste("black", (0, 0, 20, 20))
    exif = image.getexif()
    exif[0x0112] = 6  # Turn by 90 degrees clockwise: the black left half comes to the top.
    for name in ("a.jpg", "a.png"):
        image.save(tmp_path / name, exif=exif)
        loaded = load_image(tmp_path / name)
        assert loaded.size == (20, 40)
        assert sum(loaded.getpixel((10, 5))) < 60  # type: ignore[arg-type]
        assert sum(loaded.getpixel((10, 35))) > 700  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["a.jpg", "a.png"])
def test_large_pictures_are_shrunk(tmp_path: Path, name: str) -> None:
    Image.new("RGB", (3000, 1500), "red").save(tmp_path / name)
    assert load_image(tmp_path / name).size == (MAX_SIDE, MAX_SIDE // 2)
    assert load_image(tmp_path / name, max_side=100).size == (100, 50)


def test_small_pictures_keep_their_size_and_pixels(tmp_path: Path) -> None:
    pixels = np.arange(12 * 3, dtype=np.uint8).reshape(3, 4, 3)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    assert np.array_equal(np.asarray(load_image(tmp_path / "a.png")), pixels)


def test_too_many_pixels_are_never_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def decode(*_: object) -> None:
        raise AssertionError("decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", decode)
    path = tmp_path / "a.png"
    for side, reason in ((10_000, "10000 x 10000 pixels"), (22_400, "too many pixels")):
        path.write_bytes(png_header(side, side))
        for read in (load_image, check_image):
            with pytest.raises(DataError, match=f"a.png: .*{reason}"):
                read(path)
    path.write_bytes(png_header(30, 30))
    with pytest.raises(DataError, match="30 x 30 pixels are more than the limit of 800"):
        load_image(path, max_pixels=800)
    check_image(path)


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.effect_noise((80, 80), 50).save(path)
    whole = path.read_bytes()
    for size in range(0, len(whole) - 60, max(1, len(whole) // 50)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"a\.png: "):
            load_image(path)
    path.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n")
    with pytest.raises(DataError, match="not an image in one of the formats JPEG, PNG"):
        load_image(path)
    for absent in (tmp_path, tmp_path / "absent.png"):
        with pytest.raises(DataError, match="no such image file"):
            load_image(absent)


@pytest.mark.filterwarnings("ignore::UserWarning:PIL")
def test_garbled_files_raise_data_errors_only(tmp_path: Path) -> None:
    path = tmp_path / "a"
    rng = np.random.default_rng(0)
    for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"):
        Image.effect_noise((20, 20), 50).convert("RGB").save(path, format=kind)
        whole = np.frombuffer(path.read_bytes(), dtype=np.uint8)
        for _ in range(40):
            garbled = whole.copy()
            garbled[rng.integers(0, min(200, len(whole)), 4)] = rng.integers(0, 256, 4)
            path.write_bytes(garbled.tobytes())
            with contextlib.suppress(DataError):
                assert load_image(path).mode == "RGB"


def test_the_first_frame_of_an_animation(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert load_image(tmp_path / "a.gif").getpixel((4, 4)) == (255, 0, 0)
