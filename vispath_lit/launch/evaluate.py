"""An evaluation run: a checkpoint, or a system of fixed parts, on one split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytorch_lightning as pl
from omegaconf import DictConfig

from vispath_lit.launch.checkpoint import (
    KEY,
    check_fit,
    decided_keys,
    read_checkpoint,
    resolve,
    weights_fingerprint,
)
from vispath_lit.launch.config import with_checkpoint
from vispath_lit.launch.parts import make_world, without_prompts
from vispath_lit.launch.record import RunRecord
from vispath_lit.launch.system import build_system
from vispath_lit.launch.testing import evaluate_systems
from vispath_lit.launch.values import check_run
from vispath_lit.processes import in_turn


def evaluate_run(config: DictConfig, overrides: Sequence[str]) -> None:
    """Evaluates `config`'s system under every protocol of `given` and prints the table.

    Args:
        config: `conf/eval.yaml` as composed.
        overrides: the user's own words, which win over the checkpoint's config.

    Raises:
        VisPathError: whatever the user can mend, in one line.
    """
    check_run(config)
    pl.seed_everything(config.seed, workers=True, verbose=False)
    record = RunRecord(config.run_dir)
    config, content = configured(config, overrides)
    checkpoint = None if content is None else weights_fingerprint(content)
    with in_turn():
        world = make_world(config, run=record.folder)
    if content is not None:
        check_fit(content, world, config.transfer)
    with in_turn():
        system = build_system(config, world, content)
    evaluate_systems(config, world, system, None, record, config.given, checkpoint)


def configured(config: DictConfig, overrides: Sequence[str]) -> tuple[DictConfig, dict[str, Any] | None]:
    """The config that a run really has, and the content of its checkpoint: the record tells what answered.

    Raises:
        CheckpointError: a `ckpt_path` that holds no system.
    """
    content: dict[str, Any] | None = None
    if config.ckpt_path is not None:
        content = read_checkpoint(resolve(config.ckpt_path))
        config = with_checkpoint(config, content[KEY]["config"], overrides, decided_keys(content))
    return without_prompts(config), content
