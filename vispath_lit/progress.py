"""One progress bar for the whole package, on stderr so that stdout stays for results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
console = Console(stderr=True)
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yields `items` under a bar with elapsed and remaining time; one line where stderr is no terminal."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    if not console.is_terminal:
        tell(description)
        yield from items
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(printable(description), total=total)
        for item in items:
            yield item
            bar.advance(task)


def tell(text: str) -> None:
    """Lines for people on stderr, as they are: names and folders may hold brackets, which are no markup."""
    console.print(printable(text), markup=False, highlight=False, soft_wrap=True)


def printable(text: str) -> str:
    """Text of unknown origin for a terminal: control and bidirectional marks are spelt out, lines kept.

    An escape sequence in a label or a file name could otherwise recolour, clear or forge what is shown.
    """
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
