"""Files and folders that are there whole or not at all: made beside their place, then renamed."""

from __future__ import annotations

import secrets
import shutil
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# What numpy raises of a file that is cut short, altered, or no array at all.
NO_ARRAY = (ValueError, EOFError, tokenize.TokenError)


@contextmanager
def whole_file(place: Path) -> Iterator[Path]:
    """A name beside `place` to write to; it becomes `place` where the block ends well and is gone where not.

    Its folder is made where it is missing. Several processes may write the same place: the last one stays.
    """
    partial = _beside(place)
    try:
        yield partial
        partial.replace(place)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """An empty folder beside `place`, whose content the block moves there; what it leaves is removed."""
    partial = _beside(place)
    partial.mkdir()
    try:
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _beside(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    # A part of the name suffices to know it by; the whole of a long one would leave no room for the rest.
    return place.with_name(f".{place.name[:50]}.{secrets.token_hex(4)}.partial")
