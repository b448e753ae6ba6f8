"""One immutable file of a content cache: sorted keys, offsets and a matrix of rows, memory-mapped.

Layout: magic, header length, a JSON header, then `high [n]` and `low [n]` (the two halves of each item's
128-bit key, sorted), `offsets [n + 1]` (item i owns the rows `offsets[i]:offsets[i + 1]`) and
`rows [m, width]`.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from vispath_lit.errors import DataError

MAGIC = b"VPCACHE1"
ALIGN = 64
MAX_HEADER = 4096
Keys = NDArray[np.uint64]  # [n, 2]: high and low half
Floats = NDArray[Any]


class DamagedSegmentError(DataError):
    """A cache file that is cut short, altered, or of another kind."""

    def __init__(self, path: Path | None, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Sorted items; in memory, or mapped from `path`."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    offsets: NDArray[np.int64]
    rows: Floats
    path: Path | None = None
    checksum: str | None = None

    def __len__(self) -> int:
        return len(self.high)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes)

    def locate(self, keys: Keys) -> NDArray[np.int64]:
        """The position of each of `[n, 2]` keys, -1 where it is not here."""
        if len(self) == 0:
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.searchsorted(self.high, keys[:, 0])
        while True:
            here = np.minimum(at, len(self) - 1)
            half = self.high[here] == keys[:, 0]
            same = half & (self.low[here] == keys[:, 1])
            unsettled = half & ~same & (at < len(self))  # equal in the first half: look one further
            if not unsettled.any():
                return np.where(same, here, -1)
            at = at + unsettled

    def check_rows(self) -> None:
        """Compares the rows with their checksum.

        Raises:
            DamagedSegmentError: the bytes are not those that were written.
        """
        if self.checksum is not None and _checksum(self.rows) != self.checksum:
            raise DamagedSegmentError(self.path, "the vectors do not match their checksum")


def build(keys: Keys, lengths: NDArray[np.int64], rows: Floats) -> Segment:
    """Sorts items by key; of equal keys the first one stays.

    Args:
        keys: `[n, 2]`.
        lengths: `[n]` rows of each item.
        rows: `[sum(lengths), width]`, item after item.
    """
    order = np.lexsort((keys[:, 1], keys[:, 0]))  # stable: the first of equal keys comes first
    ordered = keys[order]
    first = np.ones(len(keys), dtype=bool)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    order, ordered = order[first], ordered[first]
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]
    kept = lengths[order]
    offsets = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return Segment(
        np.ascontiguousarray(ordered[:, 0]),
        np.ascontiguousarray(ordered[:, 1]),
        offsets,
        rows[spans(starts[order], kept)],
    )


def merge(segments: list[Segment]) -> Segment:
    """One segment from many; the earlier segment's item stays where two hold the same key."""
    keys = np.concatenate([np.stack([part.high, part.low], axis=1) for part in segments])
    lengths = np.concatenate([np.diff(part.offsets) for part in segments])
    return build(keys, lengths, np.concatenate([part.rows for part in segments]))


def spans(starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The indices `starts[0], starts[0] + 1, ...` (`lengths[0]` of them), then those of the next span."""
    ends = np.cumsum(lengths)
    shift: NDArray[np.int64] = np.repeat(starts - (ends - lengths), lengths)
    return shift + np.arange(len(shift), dtype=np.int64)


def write(segment: Segment, path: Path) -> None:
    """Writes to a temporary name and renames, so that a reader never meets half a file."""
    arrays = (segment.high, segment.low, segment.offsets, segment.rows)
    header = {
        "items": len(segment),
        "rows": len(segment.rows),
        "width": int(segment.rows.shape[1]),
        "dtype": segment.rows.dtype.name,
        "index_checksum": _checksum(*arrays[:3]),
        "rows_checksum": _checksum(segment.rows),
    }
    text = json.dumps(header).encode()
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(MAGIC + struct.pack("<I", len(text)) + text)
            file.write(b"\0" * (-file.tell() % ALIGN))
            for array in arrays:
                file.write(np.ascontiguousarray(array).data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path, width: int, dtype: np.dtype[Any]) -> Segment:
    """Maps a segment and checks its size and its index; the rows are checked at their first use.

    Raises:
        DamagedSegmentError: the file is cut short, altered, or holds another kind of vector.
    """
    with path.open("rb") as file:
        header, start = _read_header(file, path)
    items, count = header["items"], header["rows"]
    if header["dtype"] != dtype.name or header["width"] != width:
        found = f"{header['dtype']} x {header['width']}"
        raise DamagedSegmentError(path, f"holds {found} vectors, expected {dtype.name} x {width}")
    expected = start + 8 * (3 * items + 1) + count * width * dtype.itemsize
    if (size := path.stat().st_size) != expected:
        raise DamagedSegmentError(path, f"{size} bytes, its header says {expected}")
    raw = np.memmap(path, dtype=np.uint8, mode="r")
    high, low, offsets, rows = np.split(raw[start:], [8 * items, 16 * items, 8 * (3 * items + 1)])
    segment = Segment(
        high.view(np.uint64),
        low.view(np.uint64),
        offsets.view(np.int64),
        rows.view(dtype).reshape(count, width),
        path,
        header["rows_checksum"],
    )
    if _checksum(segment.high, segment.low, segment.offsets) != header["index_checksum"]:
        raise DamagedSegmentError(path, "the index does not match its checksum")
    _check_offsets(segment)
    return segment


def _read_header(file: IO[bytes], path: Path) -> tuple[dict[str, Any], int]:
    """The JSON header and the position of the first array."""
    if file.read(len(MAGIC)) != MAGIC:
        raise DamagedSegmentError(path, "not a cache segment")
    size = file.read(4)
    length = struct.unpack("<I", size)[0] if len(size) == 4 else MAX_HEADER + 1
    if length > MAX_HEADER:
        raise DamagedSegmentError(path, f"header of {length} bytes, at most {MAX_HEADER} expected")
    try:
        header = json.loads(file.read(length))
        counts = [header[name] for name in ("items", "rows", "width")]
        texts = [header[name] for name in ("dtype", "index_checksum", "rows_checksum")]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DamagedSegmentError(path, f"unreadable header ({error})") from error
    if not all(type(n) is int and 0 <= n < 2**40 for n in counts) or not all(type(t) is str for t in texts):
        raise DamagedSegmentError(path, f"header with impossible values {header}")
    start = len(MAGIC) + 4 + length
    return header, start + -start % ALIGN


def _check_offsets(segment: Segment) -> None:
    offsets = segment.offsets
    if offsets[0] != 0 or offsets[-1] != len(segment.rows) or (np.diff(offsets) < 0).any():
        raise DamagedSegmentError(segment.path, "offsets do not cover the rows")


def _checksum(*arrays: Floats) -> str:
    digest = xxhash.xxh3_64()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
