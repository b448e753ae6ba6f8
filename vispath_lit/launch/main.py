"""Runs a job so that a user's mistake ends in one clear line, not in a traceback."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.markup import escape

from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.launch.joined import joined
from vispath_lit.launch.values import check_run, first_line
from vispath_lit.processes import is_first
from vispath_lit.progress import console, printable

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


@contextmanager
def mended(going_on: bool = False) -> Iterator[None]:
    """Ends the process with exit code 1 and one line for what the user can mend; raises it where jobs go on.

    That is every `VisPathError`, a config that does not resolve, and what the system refuses: a full disk, a
    missing right. Any other error is this project's own and keeps its traceback.
    """
    try:
        yield
    except (VisPathError, HydraException, OmegaConfBaseException, OSError) as error:
        report(told(error))
        if going_on:
            raise
        sys.exit(1)
    except KeyboardInterrupt:
        report(VisPathError("interrupted; `python train.py ckpt_path=last` resumes a training run"))
        sys.exit(130)


def told(error: Exception) -> VisPathError:
    """The error in words that say what to do."""
    if isinstance(error, VisPathError):
        return error
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return DataError(f"{place}{error.strerror or error}; see to the file, its rights and free space")
    cause = f" ({first_line(error.__cause__)})" if error.__cause__ else ""
    return ConfigError(f"{error}{cause}; --help lists the keys")


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


def report(error: VisPathError) -> None:
    """Prints the error as one line on stderr, whichever process it comes from."""
    console.quiet = False
    console.print(f"[bold red]error:[/] {escape(printable(str(error)))}", soft_wrap=True, highlight=False)
