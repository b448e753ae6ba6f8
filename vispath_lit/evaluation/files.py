"""Result files that compare byte for byte: sorted keys, rounded numbers, never half-written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from vispath_lit.evaluation.metrics import MetricError
from vispath_lit.whole import whole_file

DIGITS = 6


def write_text(path: Path, text: str) -> None:
    """Writes so that a reader sees the old file or the new one.

    What UTF-8 cannot hold (a lone surrogate from a model's output) is written as `?`.
    """
    with (
        whole_file(path) as partial,
        partial.open("w", encoding="utf8", errors="replace", newline="\n") as file,
    ):
        file.write(text)


def write_json(path: Path, value: object) -> None:
    """Writes `value` with sorted keys and floats rounded to six digits; the same value gives the same bytes.

    Raises:
        MetricError: a NaN or infinite number, with its place in the value.
    """
    text = json.dumps(rounded(value), ensure_ascii=False, sort_keys=True, indent=2, allow_nan=False)
    write_text(path, text + "\n")


def rounded(value: object, where: str = "") -> object:
    """A copy in plain containers with string keys, floats rounded to six digits and no negative zero.

    Raises:
        MetricError: a NaN or infinite number.
    """
    if isinstance(value, Mapping):
        return {str(key): rounded(item, f"{where}/{key}") for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(item, f"{where}/{i}") for i, item in enumerate(value)]
    if isinstance(value, float):
        if not math.isfinite(value):
            raise MetricError(f"{where or 'the value'} is {value}: expected a finite number.")
        return round(float(value), DIGITS) + 0.0
    return value
