"""A system of a config with the weights of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig
from torch import nn

from vispath_lit.errors import CheckpointError
from vispath_lit.launch.checkpoint import load_weights, of_parts
from vispath_lit.launch.parts import World, make_parts, make_system, parts_of
from vispath_lit.launch.placing import place
from vispath_lit.protocols import System, Trainable


def build_system(config: DictConfig, world: World, content: dict[str, Any] | None) -> System:
    """The configured system with a checkpoint's weights in its learned parts.

    Raises:
        CheckpointError: learned parts without a checkpoint, or a checkpoint without learned parts.
        ConfigError: a `device` that is not there.
    """
    parts = make_parts(config.parts, world, parts_of(config.system, config.parts))
    system = make_system(config.system, world, parts)
    learned = learned_of(parts)
    own = isinstance(system, Trainable)
    trainable = own or any(True for _ in learned.parameters())
    if trainable and content is None:
        how = f"python train.py system={system.name} makes one" if own else "or parts=fixed"
        raise CheckpointError(f"learned parts need a checkpoint: say ckpt_path=PATH; {how}")
    if content is not None:
        if not trainable:
            raise CheckpointError("ckpt_path is given, but no configured part is a learned one")
        # A part that the user chose instead of a learned one leaves that one's weights unused.
        load_weights(learned, of_parts(content["state_dict"], set(learned)), "parts.")
    if isinstance(system, Trainable) and content is not None:
        load_weights(system.weights, content["state_dict"], "system.")
    learned.eval()
    place(parts, config.device)
    return system


def learned_of(parts: Mapping[str, Any]) -> nn.ModuleDict:
    """The parts that are modules, under the names that a checkpoint gives them."""
    return nn.ModuleDict({name: part for name, part in parts.items() if isinstance(part, nn.Module)})
