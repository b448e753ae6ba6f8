"""The number format that a frozen encoder computes in."""

from __future__ import annotations

import torch

from vispath_lit.errors import ConfigError


def choose_dtype(name: str) -> torch.dtype:
    """`auto` is bfloat16 where the processor computes in it, else float32.

    Raises:
        ConfigError: not one of auto, float32 and bfloat16.
    """
    if name == "auto":
        able = torch.cpu.get_capabilities()
        return torch.bfloat16 if able.get("avx512_bf16") or able.get("amx_bf16") else torch.float32
    known = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name not in known:
        raise ConfigError(f"encoder dtype {name!r}: expected auto, float32 or bfloat16")
    return known[name]
