"""Lines of files from elsewhere, none longer than memory bears."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vispath_lit.errors import DataError

MARK = b"\xef\xbb\xbf"  # The byte order mark of UTF-8.


def numbered_lines(file: Path, most: int, hint: str = "") -> Iterator[tuple[int, bytes]]:
    """Each line with its end and its number from 1, the first one without a byte order mark.

    Args:
        most: bytes of a line.
        hint: what a longer one tells of the file.

    Raises:
        DataError: a longer line; names file and line.
    """
    with file.open("rb") as source:
        number = 0
        while line := source.readline(most + 1):
            number += 1
            if len(line) > most:
                raise DataError(f"{file}, line {number}: longer than {most} bytes{hint}")
            yield number, line.removeprefix(MARK) if number == 1 else line
