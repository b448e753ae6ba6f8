"""A user's mistake ends in one clear line, not in a traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException
from rich.markup import escape

from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.launch.values import first_line
from vispath_lit.progress import console, printable


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


def report(error: VisPathError) -> None:
    """Prints the error as one line on stderr, whichever process it comes from."""
    console.quiet = False
    console.print(f"[bold red]error:[/] {escape(printable(str(error)))}", soft_wrap=True, highlight=False)
