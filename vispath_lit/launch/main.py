"""Runs the job of `train.py` or `eval.py`: its values checked, its processes joined, its screen quiet."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable
from typing import TypeVar

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from vispath_lit.launch.joined import joined
from vispath_lit.launch.mistakes import mended
from vispath_lit.launch.values import check_run
from vispath_lit.processes import is_first
from vispath_lit.progress import console

T = TypeVar("T")


def guarded(job: Callable[[], T], config: DictConfig) -> T:
    """Runs `job` and gives its result; a user's mistake is printed and ends the process with exit code 1.

    Of many jobs (`-m`) only this one ends by it: others may go on.
    """
    quiet()
    with mended(HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN):
        check_run(config)
        if config.threads:
            torch.set_num_threads(config.threads)
        return job()
    raise AssertionError("a mistake ends the process")


def launch(main: Callable[[], object]) -> None:
    """Runs a Hydra main function; what Hydra itself finds wrong is one line too."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then hands its errors on in place of printing them.
    with mended(), joined():
        main()


def quiet() -> None:
    """Leaves the screen to this project's own lines: libraries speak up from a warning on.

    Of several processes the first one prints.
    """
    console.quiet = not is_first()
    os.environ.setdefault("WANDB_SILENT", "true")
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*is deprecated, use.*", module="pytorch_lightning")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")
