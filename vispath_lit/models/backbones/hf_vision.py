"""The vision tower's features of pictures, kept in main memory: no training changes them."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
from PIL.Image import Image
from torch import Tensor

from vispath_lit.encoders.cache import content_keys

Features = tuple[Tensor, ...]


class VisionFeatures:
    """Features of prepared pictures by their pixels; the pictures used longest ago make room.

    A family offers this where its `forward` takes features in place of pixels (`mm_encoder_outputs`: Qwen-VL,
    Idefics3, SmolVLM and LLaVA-OneVision all do). They are not kept on disk: a 7B model's are two megabytes
    a picture, more than the pictures themselves.

    Args:
        model: without its language head.
        image_processor: prepares pictures.
        megabytes: of kept features.
    """

    def __init__(self, model: Any, image_processor: Any, megabytes: int) -> None:
        self.model = model
        self.image_processor = image_processor
        self.limit = megabytes << 20
        self.computed = 0  # pictures that went through the vision tower
        self._kept: OrderedDict[bytes, Features] = OrderedDict()
        self._bytes = 0
        self._takes = set(inspect.signature(model.get_image_features).parameters)

    @staticmethod
    def offered(model: Any) -> bool:
        """Whether the model's family takes features in place of pixels."""
        takes = "mm_encoder_outputs" in inspect.signature(model.forward).parameters
        return takes and hasattr(model, "get_image_features")

    def __call__(self, images: Sequence[Image]) -> Any:
        """What the vision tower gives for `images`, one a prompt, in the form that `forward` takes."""
        keys = [key.tobytes() for key in content_keys(repr(i.size).encode() + i.tobytes() for i in images)]
        found = {key: self._kept[key] for key in keys if key in self._kept}
        fresh = {key: image for key, image in zip(keys, images, strict=True) if key not in found}
        if fresh:
            found.update(zip(fresh, self._compute(list(fresh.values())), strict=True))
        for key in fresh:
            self._keep(key, found[key])
        for key in keys:
            if key in self._kept:
                self._kept.move_to_end(key)
        device = self.model.device
        rows = [[layer.to(device) for layer in found[key]] for key in keys]
        layers = [tuple(column) for column in zip(*rows, strict=True)]
        return SimpleNamespace(pooler_output=layers[0], deepstack_features=layers[1:])

    @torch.no_grad()
    def _compute(self, images: list[Image]) -> list[Features]:
        """For each picture its features `[tokens, d]`, then those for deeper layers where there are any."""
        device, dtype = self.model.device, self.model.dtype
        prepared = self.image_processor([[image] for image in images], return_tensors="pt")
        inputs = {key: value for key, value in prepared.items() if key in self._takes}
        inputs = {key: moved(value, device, dtype) for key, value in inputs.items()}
        output = self.model.get_image_features(**inputs, return_dict=True)
        self.computed += len(images)
        columns = [output.pooler_output, *(getattr(output, "deepstack_features", None) or ())]
        return [tuple(rows) for rows in zip(*columns, strict=True)]

    def _keep(self, key: bytes, features: Features) -> None:
        size = sum(layer.nbytes for layer in features)
        if size > self.limit:
            return
        self._kept[key] = tuple(layer.to("cpu", copy=True) for layer in features)  # no view of a batch
        self._bytes += size
        while self._bytes > self.limit:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= sum(layer.nbytes for layer in oldest)


def moved(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """A tensor on a device, in the model's precision where it holds no whole numbers; else what it was."""
    if not isinstance(value, Tensor):
        return value
    return value.to(device, dtype if value.is_floating_point() else None)
