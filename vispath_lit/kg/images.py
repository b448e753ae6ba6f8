"""Opens pictures that nobody vouches for: size is checked before decoding, damage is named."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from vispath_lit.errors import DataError

# Only decoders that run inside Pillow: no PostScript, no external program.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")
MAX_PIXELS = 64_000_000
MAX_BYTES = 512 << 20
MAX_SIDE = 1024


def load_image(path: str | Path, max_pixels: int = MAX_PIXELS, max_side: int = MAX_SIDE) -> Image.Image:
    """A picture as RGB: upright (EXIF), transparency on white, no side above `max_side` pixels.

    The first frame of an animation is taken. A JPEG is decoded at a reduced scale where that suffices.

    Raises:
        DataError: no such file, no picture, damaged, or more than `max_pixels`; the file is then not decoded.
    """
    path = Path(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(_regular(path), formats=FORMATS) as image:
                _check_size(path, image, max_pixels)
                image.draft(None, (max_side, max_side))
                image.load()
                upright = ImageOps.exif_transpose(_flatten(image))
    except DataError:
        raise
    # Decoders of hostile files raise nearly anything (struct.error, KeyError, MemoryError, ...); all of it
    # means the same to the user, and nothing is swallowed.
    except Exception as error:
        raise DataError(
            f"{path}: {_reason(error)}; replace the file or remove the reference to it"
        ) from error
    upright.thumbnail((max_side, max_side), Image.Resampling.LANCZOS)
    return upright


def check_image(path: str | Path, max_pixels: int = MAX_PIXELS) -> None:
    """Reads the header only.

    Raises:
        DataError: no such file, no picture, or more than `max_pixels`.
    """
    path = Path(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(_regular(path), formats=FORMATS) as image:
                _check_size(path, image, max_pixels)
    except DataError:
        raise
    except Exception as error:  # As in load_image.
        raise DataError(f"{path}: {_reason(error)}") from error


def is_there(path: Path) -> bool:
    """Whether there is such a file; a name that no disk can hold, as data sets have some, is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def _regular(path: Path) -> Path:
    if not path.is_file():
        raise DataError(f"{path}: no such image file")
    if (size := path.stat().st_size) > MAX_BYTES:
        raise DataError(f"{path}: an image file of {size} bytes; at most {MAX_BYTES} are read")
    return path


def _check_size(path: Path, image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise DataError(
            f"{path}: {width} x {height} pixels are more than the limit of {max_pixels}; shrink the image"
        )
    if width < 1 or height < 1:
        raise DataError(f"{path}: an image of {width} x {height} pixels")


def _flatten(image: Image.Image) -> Image.Image:
    """RGB, transparency on white; EXIF is carried along for `exif_transpose`."""
    exif = image.getexif()
    if image.mode.startswith("I") or image.mode == "F":
        flat = _eight_bits(image)
    elif image.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in image.info:
        layer = image.convert("RGBA")
        flat = Image.new("RGB", image.size, "white")
        flat.paste(layer, mask=layer.getchannel("A"))
    else:
        flat = image.convert("RGB")
    flat.info = {"exif": exif.tobytes()} if exif else {}
    return flat


def _eight_bits(image: Image.Image) -> Image.Image:
    """16-bit grey scaled to 8 bits; wider ranges scaled by their maximum. Pillow itself would only clip."""
    values = np.nan_to_num(np.asarray(image, dtype=np.float64), posinf=0.0, neginf=0.0)
    top = 65535.0 if image.mode.startswith("I;16") else max(float(values.max()), 255.0)
    return Image.fromarray((np.clip(values / top, 0, 1) * 255).astype(np.uint8)).convert("RGB")


def _reason(error: Exception) -> str:
    if isinstance(error, Image.DecompressionBombError):
        return f"the image has too many pixels ({error})"
    if isinstance(error, UnidentifiedImageError):
        return f"not an image in one of the formats {', '.join(FORMATS)}"
    return f"the image is damaged ({type(error).__name__}: {error})"
