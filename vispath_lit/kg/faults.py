"""What is wrong in a graph folder: stop at the first bad line, or leave it out, count it and list it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from vispath_lit.errors import ConfigError, DataError

if TYPE_CHECKING:  # The command line reads `OnError` here before it does anything; Arrow would make it wait.
    from vispath_lit.kg.tsv import Table

OnError = Literal["fail", "skip"]
LISTED = 100  # Faults that a report spells out; the counts are always complete.


@dataclass(frozen=True, slots=True)
class Check:
    """One rule for the rows of a table.

    Attributes:
        bad: `[n]` bool, the rows that break it.
        reason: says what was found in a row and what was expected.
    """

    bad: NDArray[np.bool_]
    reason: Callable[[int], str]


@dataclass(slots=True)
class Faults:
    """Collects faults; in the mode `fail` the first one is raised.

    Raises:
        ConfigError: `on_error` is neither `fail` nor `skip`.
    """

    on_error: OnError = "fail"
    counts: Counter[str] = field(default_factory=Counter)
    listed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.on_error not in ("fail", "skip"):
            raise ConfigError(f"on_error is {self.on_error!r}; allowed are 'fail' and 'skip'")

    def add(self, file: Path, line: int, reason: str) -> None:
        """One bad line.

        Raises:
            DataError: in the mode `fail`.
        """
        message = f"{file.name}, line {line}: {reason}"
        if self.on_error == "fail":
            raise DataError(
                f"{file}, line {line}: {reason}. Mend the line, or leave bad lines out with on_error=skip"
            )
        self.counts[file.name] += 1
        if len(self.listed) < LISTED:
            self.listed.append(message)

    def reject(self, table: Table, checks: Sequence[Check]) -> NDArray[np.bool_]:
        """Reports every row that breaks a rule, in file order and with the first rule it breaks.

        Returns:
            `[n]` bool, the rows to keep.
        """
        bad = np.zeros(len(table), dtype=bool)
        for check in checks:
            bad |= check.bad
        rows = np.flatnonzero(bad)
        spelled = rows[: 1 if self.on_error == "fail" else max(0, LISTED - len(self.listed))].tolist()
        for row, line in zip(spelled, table.lines(spelled), strict=True):
            self.add(table.path, line, next(check.reason(row) for check in checks if check.bad[row]))
        self.counts[table.path.name] += len(rows) - len(spelled)
        return ~bad
