"""A frozen model's products in half precision, where the processor has it, under trained weights in full."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn


def products_in(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[object]:
    """Rounds products to `dtype`; float32 is left to whatever precision training itself runs in."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)


def round_products(model: nn.Module, dtype: torch.dtype) -> None:
    """Keeps frozen weights of products in `dtype`, in place: autocast would round them at each call."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            for weight in module.parameters(recurse=False):
                if not weight.requires_grad:
                    weight.data = weight.data.to(dtype)
