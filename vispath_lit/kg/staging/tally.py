"""What was read, what was left out, and why: exact counts, and the first faults spelt out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.faults import LISTED, OnError


@dataclass(slots=True)
class Tally:
    """Counts of one import.

    Attributes:
        read: rows taken, by table.
        skipped: rows left out, by reason.
        noted: facts that are no fault, such as entities without a name.
        listed: the first faults with file, line and what was found.

    Raises:
        ConfigError: `on_error` is neither `fail` nor `skip`.
    """

    on_error: OnError = "fail"
    read: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    noted: Counter[str] = field(default_factory=Counter)
    listed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.on_error not in ("fail", "skip"):
            raise ConfigError(f"on_error is {self.on_error!r}; allowed are 'fail' and 'skip'")

    def skip(self, source: str, line: int, reason: str, found: str = "") -> None:
        """One row that cannot be used.

        Args:
            reason: its kind, by which it is counted.
            found: what was found, for the list.

        Raises:
            DataError: with `on_error=fail`.
        """
        place = f"{source}, line {line}" if line else source
        said = f"{place}: {reason}{f' ({found})' if found else ''}"
        if self.on_error == "fail":
            raise DataError(f"{said}. Mend it, or leave such rows out and have them counted: --on-error skip")
        self.skipped[reason] += 1
        if len(self.listed) < LISTED:
            self.listed.append(said)

    def skip_rows(
        self,
        source: str,
        lines: NDArray[Any],
        bad: NDArray[np.bool_],
        reason: str,
        found: Callable[[int], str] = lambda row: "",
    ) -> None:
        """All rows where `bad`, `[n]`, holds; `lines`, `[n]`, are their line numbers."""
        rows = np.flatnonzero(bad)
        spelt = rows[: 1 if self.on_error == "fail" else max(0, LISTED - len(self.listed))].tolist()
        for row in spelt:
            self.skip(source, int(lines[row]), reason, found(row))
        if len(rows) > len(spelt):
            self.skipped[reason] += len(rows) - len(spelt)

    def add(self, other: Tally) -> None:
        """Takes over the counts of a part."""
        for name in ("read", "skipped", "noted"):
            getattr(self, name).update(getattr(other, name))
        self.listed.extend(other.listed[: LISTED - len(self.listed)])

    def as_dict(self) -> dict[str, Any]:
        """For JSON, keys sorted."""
        counts = {name: dict(sorted(getattr(self, name).items())) for name in ("read", "skipped", "noted")}
        return {**counts, "faults": list(self.listed)}

    @classmethod
    def from_dict(cls, record: dict[str, Any], on_error: OnError) -> Tally:
        read, skipped, noted = (
            Counter({str(key): int(n) for key, n in record[name].items()}) for name in COUNTS
        )
        return cls(on_error, read, skipped, noted, [str(fault) for fault in record["faults"]])


COUNTS: Sequence[str] = ("read", "skipped", "noted")
