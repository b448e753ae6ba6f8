"""A disk cache of float rows keyed by content, shared by processes: what is embedded once stays embedded.

Items wait in memory until there are enough for a file; files are immutable segments (`encoders/segment.py`),
so a crash loses at most the waiting items, and several processes and threads may read and write at once. Of
two values for one key the one that was written first counts.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
import weakref
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vispath_lit.encoders.segment import (
    DamagedSegmentError,
    Floats,
    Keys,
    Segment,
    build,
    merge,
    read,
    spans,
    write,
)

log = logging.getLogger(__name__)
MAX_FILES = 16
LARGE_FILE = 256 << 20  # bytes; such files are not merged again


def content_keys(contents: Iterable[bytes]) -> Keys:
    """`[n, 2]`: a 128-bit hash of each content."""
    joined = b"".join(blake2b(content, digest_size=16).digest() for content in contents)
    return np.frombuffer(joined, dtype=">u8").reshape(-1, 2).astype(np.uint64)


class ContentCache:
    """Rows of `width` floats for each key, one or more rows a key.

    Args:
        folder: where the segments lie; None keeps everything in memory.
        width: floats in a row.
        dtype: float16 or float32; values are rounded to it when added.
        flush_bytes: waiting bytes that make a new file.
    """

    def __init__(
        self, folder: Path | None, width: int, dtype: np.dtype[Any] | type, flush_bytes: int = 16 << 20
    ) -> None:
        self.folder = folder
        self.width = width
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.flush_bytes = flush_bytes
        self._waiting: list[Segment] = []
        self._stored: list[Segment] = []
        self._unreadable: set[Path] = set()
        self._checked: set[Path] = set()
        self._seen_change = -1
        self._owner = os.getpid()
        self._lock = threading.RLock()
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._scan()
            weakref.finalize(self, _flush_last, self._waiting, folder, self._owner)

    def get(self, keys: Keys) -> tuple[Floats, NDArray[np.int64]]:
        """The rows of `[n, 2]` keys, item after item, and `[n]` rows an item: 0 where the key is unknown."""
        with self._lock:
            while True:
                try:
                    return self._gather(keys)
                except DamagedSegmentError as error:
                    self._drop(error)

    def add(self, keys: Keys, rows: Floats, lengths: NDArray[np.int64] | None = None) -> None:
        """Keeps the rows of new keys; `lengths` is `[n]`, one row an item where it is None."""
        counts = np.ones(len(keys), dtype=np.int64) if lengths is None else lengths
        if len(keys) == 0:
            return
        new = build(keys, counts, rows.astype(self.dtype, copy=False))
        with self._lock:
            # Like a log-structured merge tree: few parts to look in, and each row is copied only a few times.
            while self._waiting and len(self._waiting[-1]) <= 2 * len(new):
                new = merge([self._waiting.pop(), new])
            self._waiting.append(new)
            if sum(part.nbytes for part in self._waiting) >= self.flush_bytes:
                self.flush()

    def flush(self) -> None:
        """Writes what waits in memory."""
        with self._lock:
            if self.folder is None or not self._waiting:
                return
            _flush_waiting(self._waiting, self.folder, self._owner)
            self._scan()
            if len([part for part in self._stored if part.nbytes < LARGE_FILE]) > MAX_FILES:
                self._compact()

    def _parts(self) -> list[Segment]:
        return [*self._stored, *self._waiting]

    def _gather(self, keys: Keys) -> tuple[Floats, NDArray[np.int64]]:
        """`get` from the mapped files, after a look for other processes' files where something is missing."""
        owner, place = self._locate(keys)
        if (owner < 0).any() and self._scan():
            owner, place = self._locate(keys)
        parts = self._parts()
        lengths = np.zeros(len(keys), dtype=np.int64)
        for i, part in enumerate(parts):
            mine = owner == i
            if mine.any():
                self._check(part)
                lengths[mine] = part.offsets[place[mine] + 1] - part.offsets[place[mine]]
        starts = np.cumsum(lengths) - lengths
        rows = np.empty((int(lengths.sum()), self.width), dtype=self.dtype)
        for i, part in enumerate(parts):
            mine = owner == i
            if mine.any():
                source = spans(part.offsets[place[mine]], lengths[mine])
                rows[spans(starts[mine], lengths[mine])] = part.rows[source]
        return rows, lengths

    def _locate(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which part holds each key (-1: none) and where in it; the earliest part counts."""
        owner = np.full(len(keys), -1, dtype=np.int64)
        place = np.zeros(len(keys), dtype=np.int64)
        open_rows = np.arange(len(keys))
        for i, part in enumerate(self._parts()):
            at = part.locate(keys[open_rows])
            found = at >= 0
            owner[open_rows[found]] = i
            place[open_rows[found]] = at[found]
            open_rows = open_rows[~found]
            if len(open_rows) == 0:
                break
        return owner, place

    def _check(self, part: Segment) -> None:
        if part.path is not None and part.path not in self._checked:
            part.check_rows()
            self._checked.add(part.path)

    def _scan(self) -> bool:
        """Maps the files that came since the last look; True where there were any."""
        if self.folder is None or (change := self.folder.stat().st_mtime_ns) == self._seen_change:
            return False
        self._seen_change = change
        known = {part.path for part in self._stored} | self._unreadable
        files = sorted(path for path in self.folder.glob("*.seg") if path not in known)
        before = len(self._stored)
        for path in files:
            try:
                self._stored.append(read(path, self.width, self.dtype))
            except (
                FileNotFoundError
            ):  # merged into another file by another process; the next look finds that one
                self._seen_change = -1
            except (DamagedSegmentError, OSError) as error:  # Another user's may not be ours to read.
                self._unreadable.add(path)
                log.warning("ignored a damaged or closed cache file, its texts are embedded again: %s", error)
        self._stored.sort(key=lambda part: str(part.path))
        return len(self._stored) > before

    def _drop(self, error: DamagedSegmentError) -> None:
        """Forgets the segment whose rows are damaged."""
        if error.path is not None:
            self._unreadable.add(error.path)
        self._stored = [part for part in self._stored if part.path != error.path]
        log.warning("ignored a damaged cache file, its texts are embedded again: %s", error)

    def _compact(self) -> None:
        """Merges the small files into one. The new name sorts where the oldest of them did."""
        small = [part for part in self._stored if part.nbytes < LARGE_FILE]
        try:
            for part in small:
                self._check(part)
        except DamagedSegmentError as error:
            self._drop(error)
            return
        oldest = small[0].path
        assert self.folder is not None
        assert oldest is not None
        write(merge(small), self.folder / f"{oldest.name.split('-')[0]}-{secrets.token_hex(6)}.seg")
        for part in small:
            # Another process may have merged the same files, and some systems keep a mapped file.
            with contextlib.suppress(OSError):
                assert part.path is not None
                part.path.unlink()
        self._stored = [part for part in self._stored if part not in small]
        self._scan()


def _flush_last(waiting: list[Segment], folder: Path, owner: int) -> None:
    """Writes what waits when its cache ends: a full disk is then told, as nobody could catch an error."""
    try:
        _flush_waiting(waiting, folder, owner)
    except OSError as error:
        log.warning("what was embedded last is not kept and will be embedded again: %s", error)


def _flush_waiting(waiting: list[Segment], folder: Path, owner: int) -> None:
    """Writes the waiting parts as one file; a forked child leaves its parent's parts to the parent."""
    if waiting and os.getpid() == owner:
        whole = merge(waiting) if len(waiting) > 1 else waiting[0]
        folder.mkdir(parents=True, exist_ok=True)
        write(whole, folder / f"{time.time_ns():020d}-{secrets.token_hex(6)}.seg")
        waiting.clear()
