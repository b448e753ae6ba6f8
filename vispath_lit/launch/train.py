"""A training run from config to table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from omegaconf import DictConfig

from vispath_lit.errors import ConfigError
from vispath_lit.launch.checkpoint import (
    check_fit,
    load_weights,
    of_parts,
    read_checkpoint,
    resolve,
    weights_fingerprint,
)
from vispath_lit.launch.fit import fit
from vispath_lit.launch.fit_system import fit_system
from vispath_lit.launch.parts import (
    World,
    make_parts,
    make_system,
    make_world,
    parts_of,
    without_prompts,
)
from vispath_lit.launch.placing import chosen_device, place
from vispath_lit.launch.record import RunRecord
from vispath_lit.launch.system import learned_of
from vispath_lit.launch.testing import evaluate_systems
from vispath_lit.launch.values import check_run
from vispath_lit.processes import in_turn, is_first, shared
from vispath_lit.protocols import System, Trainable

GIVEN = ("nothing", "start", "start_and_depth")


def train(config: DictConfig) -> float | None:
    """Fits the learned parts (unless `fit=false`), then tests them beside the fixed system.

    Returns:
        the best val score, by which the checkpoint was chosen: what a sweep maximises. None without a fit.

    Raises:
        VisPathError: whatever the user can mend, in one line.
    """
    check_run(config)
    config = without_prompts(config)
    chosen_device(config.device)  # told before hours of training
    pl.seed_everything(config.seed, workers=True, verbose=False)
    record = RunRecord(config.run_dir)
    with in_turn():
        world = make_world(config, run=record.folder)
    with in_turn():
        parts = make_parts(config.parts, world, parts_of(config.system, config.parts))
    system = make_system(config.system, world, parts)
    chosen = None if config.ckpt_path is None else _loaded(config, world, parts, system)
    score: float | None = None
    if config.fit and isinstance(system, Trainable):
        chosen = _fit_rival(config, world, parts, system, record.folder)
    elif config.fit:
        system, chosen, score = fit(config, world, parts, system, record.folder)
    elif chosen is None:
        raise ConfigError("fit=false tests a trained system: say which with ckpt_path=PATH")
    else:
        place(parts, config.device)
    fixed = None
    if config.compare_fixed and not isinstance(system, Trainable):  # a rival has no fixed twin
        with in_turn():
            fixed = make_system(config.system, world, make_parts(config.fixed, world))
    checkpoint = weights_fingerprint(read_checkpoint(chosen))
    evaluate_systems(config, world, system, fixed, record, GIVEN, checkpoint)
    return score


def _loaded(config: DictConfig, world: World, parts: Mapping[str, Any], system: System) -> Path:
    """Loads the weights of `ckpt_path` into the parts, and into a rival that is not trained anew."""
    chosen = resolve(config.ckpt_path)
    content = read_checkpoint(chosen)
    check_fit(content, world, config.transfer)
    learned = learned_of(parts)
    # A grounder of pictures, say, is of no use where starts are named in words.
    names = set(learned) if config.transfer else parts
    load_weights(learned, of_parts(content["state_dict"], names), "parts.")
    if isinstance(system, Trainable) and not config.fit:
        load_weights(system.weights, content["state_dict"], "system.")
    return chosen


def _fit_rival(
    config: DictConfig, world: World, parts: Mapping[str, Any], system: Trainable, run: Path
) -> Path:
    """The first process trains a system of its own weights, the others take them from its checkpoint."""
    chosen = shared(fit_system(config, world, parts, system, run) if is_first() else None)
    assert chosen is not None
    if not is_first():
        state = read_checkpoint(chosen)["state_dict"]
        load_weights(learned_of(parts), of_parts(state, parts), "parts.")
        load_weights(system.weights, state, "system.")
    return chosen
