"""Trains a system that has weights of its own: a rival such as EmbedKGQA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from vispath_lit.errors import DataError
from vispath_lit.launch.checkpoint import KEY, origin, write_checkpoint
from vispath_lit.launch.config import plain
from vispath_lit.launch.grounder import train_own_grounder
from vispath_lit.launch.link import link
from vispath_lit.launch.parts import World
from vispath_lit.launch.questions import split_questions
from vispath_lit.launch.system import learned_of
from vispath_lit.protocols import Trainable


def fit_system(
    config: DictConfig, world: World, parts: Mapping[str, Any], system: Trainable, run: Path
) -> Path:
    """Trains `system` in place and returns its checkpoint, which holds the parts that it uses as well.

    A learned grounder among them is trained first, unless `ckpt_path` has brought its weights.

    Raises:
        DataError: no question to train on.
    """
    if config.ckpt_path is None:
        train_own_grounder(config, parts)
    found = {}
    for split, limit in (("train", config.data.train_limit), ("val", config.data.limit)):
        found[split] = link(split_questions(world, split, limit), world, parts)
    if not found["train"]:
        raise DataError(f"data={config.data.name} has no train questions; training needs some")
    system.fit(found["train"], found["val"][: config.training.val_questions], config.seed)
    state = {f"parts.{name}": value for name, value in learned_of(parts).state_dict().items()}
    state |= {f"system.{name}": value for name, value in system.weights.state_dict().items()}
    file = run / "checkpoints" / "best.ckpt"
    write_checkpoint(file, {KEY: origin(plain(config), world), "state_dict": state})
    return file
