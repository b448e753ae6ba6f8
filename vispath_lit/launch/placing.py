"""Where a trained system answers: on the GPU, where there is one, as it does while it is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from vispath_lit.errors import ConfigError

ON_PROCESSOR = ("grounder", "selector")
"""They look at a few pictures and numbers of a question at a time, in the processor's memory."""


def place(parts: Mapping[str, Any], device: str) -> None:
    """Moves the parts that have weights to where they answer.

    Args:
        device: `auto` is this process's GPU, the processor where there is none; else a name as torch has it.

    Raises:
        ConfigError: a device that torch or this machine does not have.
    """
    where = chosen_device(device)
    for name, part in parts.items():
        if isinstance(part, nn.Module) and name not in ON_PROCESSOR:
            part.to(where)


def chosen_device(device: str) -> torch.device:
    """The device of that name; see `place`."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
        torch.empty(1, device=found)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"device is {device!r}, which cannot be used here: {reason}") from error
    return found
