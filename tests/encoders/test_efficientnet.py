from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image as PILImage
from PIL.Image import Image

from vispath_lit.encoders.efficientnet import (
    EfficientNetLite,
    letterbox,
    load_efficientnet,
    on_white,
    pixels,
)
from vispath_lit.errors import ConfigError


def picture(seed: int, size: tuple[int, int] = (60, 40)) -> Image:
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (4, 6, 3), dtype=np.uint8)
    return PILImage.fromarray(blocks).resize(size, PILImage.Resampling.NEAREST)


@pytest.fixture(scope="module")
def encoder() -> EfficientNetLite:
    return EfficientNetLite(None, size=64, dtype="float32", batch=2)


def test_equals_the_plain_network(encoder: EfficientNetLite) -> None:
    images = [picture(0), picture(1), picture(2, (30, 90))]
    vectors = encoder.encode(images)
    assert vectors.shape == (3, encoder.dim) == (3, 5120)
    with torch.no_grad():
        maps = load_efficientnet(64).extract_features(pixels(images, 64))  # type: ignore[operator]
    # By hand: at 64 pixels the map is 2 x 2, so that pooling to 2 x 2 keeps it.
    plain = maps.reshape(3, -1)
    plain = plain / plain.norm(dim=1, keepdim=True)
    torch.testing.assert_close(vectors, plain, atol=1e-3, rtol=1e-3)
    assert float((vectors * plain).sum(1).min()) > 0.99999


def test_unit_rows_and_equal_pictures(encoder: EfficientNetLite) -> None:
    vectors = encoder.encode([picture(0), picture(3), picture(0)])
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(3))
    assert torch.equal(vectors[0], vectors[2])
    assert float(vectors[0] @ vectors[1]) < 0.99
    assert encoder.encode([]).shape == (0, encoder.dim)


def test_bfloat16_is_close(encoder: EfficientNetLite) -> None:
    images = [picture(n) for n in range(4)]
    fast = EfficientNetLite(None, size=64, dtype="bfloat16")
    assert float((fast.encode(images) * encoder.encode(images)).sum(1).min()) > 0.97


def test_cache_is_by_pixels(tmp_path: Path) -> None:
    first = EfficientNetLite(tmp_path, size=64)
    fresh = first.encode([picture(0), picture(1)])
    first.flush()
    reopened = EfficientNetLite(tmp_path, size=64)
    reopened.model = torch.nn.Identity()  # whatever is embedded again fails
    assert torch.equal(reopened.encode([picture(1), picture(0)]), fresh.flip(0))
    with pytest.raises(AttributeError):
        reopened.encode([picture(2)])


def test_same_bytes_of_another_shape_are_another_picture(encoder: EfficientNetLite) -> None:
    wide = picture(5, (60, 40))
    tall = PILImage.frombytes("RGB", (40, 60), wide.tobytes())
    vectors = encoder.encode([wide, tall])
    assert not torch.equal(vectors[0], vectors[1])


def test_letterbox_pads_with_white() -> None:
    square = np.asarray(letterbox(PILImage.new("RGB", (100, 50), "black"), 64))
    assert square.shape == (64, 64, 3)
    assert bool((square[:15] == 255).all())
    assert bool((square[17:47] == 0).all())
    thin = letterbox(PILImage.new("RGB", (4000, 1), "black"), 64)
    assert thin.size == (64, 64)


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "CMYK", "I;16"])
def test_any_mode_becomes_rgb(mode: str) -> None:
    image = picture(1).convert(mode) if mode != "I;16" else PILImage.new("I;16", (5, 5), 60000)
    assert on_white(image).mode == "RGB"


def test_transparent_is_white() -> None:
    clear = PILImage.new("RGBA", (4, 4), (10, 20, 30, 0))
    assert on_white(clear).getpixel((1, 1)) == (255, 255, 255)


def test_settings_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match="100"):
        EfficientNetLite(None, size=100)
    with pytest.raises(ConfigError, match="pool 3"):
        EfficientNetLite(None, size=64, pool=3)
    with pytest.raises(ConfigError, match="batch 0"):
        EfficientNetLite(None, batch=0)


def test_fine_features_share_the_pass_and_keep_places(tmp_path: Path) -> None:
    encoder = EfficientNetLite(tmp_path, size=224, dtype="float32")
    images = [picture(0), picture(1)]
    fine = encoder.fine.encode(images)
    assert fine.shape == (2, encoder.fine.dim) == (2, sum(c * s**2 for c, s in encoder.fine.shapes))
    torch.testing.assert_close(fine.norm(dim=1), torch.ones(2))
    torch.testing.assert_close(fine, encoder.fine.compute(images), atol=1e-3, rtol=0)
    encoder.maps = None  # type: ignore[assignment,method-assign]  # both are known by now
    whole = encoder.encode(images)
    assert torch.equal(encoder.fine.encode(images), fine)
    torch.testing.assert_close(
        whole, EfficientNetLite(None, size=224, dtype="float32").encode(images), atol=1e-3, rtol=0
    )
    assert encoder.fine.fingerprint != encoder.fingerprint


def test_cells_are_places_of_the_picture(tmp_path: Path) -> None:
    encoder = EfficientNetLite(tmp_path, size=224, dtype="float32")
    cells = encoder.cells.encode([picture(0), picture(1)])
    assert cells.shape == (2, 49 * 320) == (2, encoder.cells.side**2 * encoder.cells.channels)
    last = encoder.read([picture(0)]).last[0]
    last = last / last.norm()
    for row, column in ((0, 0), (2, 5), (6, 6)):
        mine = cells[0].view(7, 7, 320)[row, column]
        torch.testing.assert_close(mine, last[:, row, column], atol=1e-3, rtol=0)
