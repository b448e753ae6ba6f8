"""Parquet files, some rows at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.streams import Member

ROWS = 1 << 19


def parquet_batches(member: Member, rows: int = ROWS) -> Iterator[tuple[Any, int]]:
    """Record batches and the number of their first row, from 1.

    A file in an archive is copied to disk first: Parquet is not read from front to back.

    Raises:
        DataError: no Parquet file, or a damaged one.
    """
    with tempfile.TemporaryFile() as copy:
        opened: Any = member.path
        if opened is None:
            while chunk := member.stream.read(1 << 20):
                copy.write(chunk)
            copy.seek(0)
            opened = pa.PythonFile(copy, mode="r")
        line = 1
        try:
            for batch in pq.ParquetFile(opened).iter_batches(batch_size=rows):
                yield batch, line
                line += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"{member.source}: not a Parquet file, or a damaged one: {error}") from error
