"""Runs a job so that a user's mistake ends in one clear line, not in a traceback."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from rich.markup import escape

from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.launch.values import check_run, first_line
from vispath_lit.progress import console, printable


def guarded(job: Callable[[], object], config: DictConfig) -> None:
    """Runs `job`; a mistake of the user is printed and ends the process with exit code 1."""
    quiet()
    with mended():
        check_run(config)
        if config.threads:
            torch.set_num_threads(config.threads)
        job()


@contextmanager
def mended() -> Iterator[None]:
    """Ends the process with exit code 1 and one line for what the user can mend.

    That is every `VisPathError`, a config that does not resolve, and what the system refuses: a full disk, a
    missing right. Any other error is this project's own and keeps its traceback.
    """
    try:
        yield
    except VisPathError as error:
        report(error)
        sys.exit(1)
    except (HydraException, OmegaConfBaseException) as error:
        cause = f" ({first_line(error.__cause__)})" if error.__cause__ else ""
        report(ConfigError(f"{error}{cause}; --help lists the keys"))
        sys.exit(1)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        report(DataError(f"{place}{error.strerror or error}; see to the file, its rights and free space"))
        sys.exit(1)
    except KeyboardInterrupt:
        report(VisPathError("interrupted; `python train.py ckpt_path=last` resumes a training run"))
        sys.exit(130)


def launch(main: Callable[[], None]) -> None:
    """Runs a Hydra main function; what Hydra itself finds wrong is one line too."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # Hydra then hands its errors on in place of printing them.
    with mended():
        main()


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
    console.print(f"[bold red]error:[/] {escape(printable(str(error)))}", soft_wrap=True, highlight=False)
