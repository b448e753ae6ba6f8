"""Runs a job so that a user's mistake ends in one clear line, not in a traceback."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable

import torch
from omegaconf import DictConfig
from rich.markup import escape

from vispath_lit.errors import VisPathError
from vispath_lit.progress import console


def guarded(job: Callable[[], object], config: DictConfig) -> None:
    """Runs `job`; a `VisPathError` is printed and ends the process with exit code 1."""
    quiet()
    try:
        if config.get("threads"):
            torch.set_num_threads(int(config.threads))
        job()
    except VisPathError as error:
        report(error)
        sys.exit(1)


def quiet() -> None:
    """Leaves the screen to this project's own lines: libraries speak up from a warning on."""
    os.environ.setdefault("WANDB_SILENT", "true")
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    logging.getLogger("pytorch_lightning.utilities.rank_zero").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*is deprecated, use.*", module="pytorch_lightning")
    warnings.filterwarnings("ignore", message=".*does not have many workers.*")
    warnings.filterwarnings("ignore", message=".*is smaller than the logging interval.*")


def report(error: VisPathError) -> None:
    """Prints the error as one line on stderr."""
    console.print(f"[bold red]error:[/] {escape(str(error))}", soft_wrap=True, highlight=False)
