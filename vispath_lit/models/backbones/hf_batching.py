"""Requests that are under way at the same time are generated together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import index

from vispath_lit.models.backbones.hf_decoding import Row

PATIENCE = 0.05  # seconds without a newcomer after which a batch that is not full begins


@dataclass(eq=False, slots=True)
class _Waiting:
    row: Row
    send: Callable[[], None]
    done: Future[None] = field(default_factory=Future)


class Batches:
    """Gathers rows of several threads into batches; one thread of its own generates them one by one.

    A batch is the row that has waited longest and those most like it: of the same step, of about its length.

    Args:
        size: rows of a batch, at most.
        write: writes the answers to all rows of a batch.
    """

    def __init__(self, size: int, write: Callable[[Sequence[Row]], None]) -> None:
        self._size = index(size)
        self._write = write
        self._waiting: list[_Waiting] = []  # longest first
        self._lock = threading.Lock()
        self._worker = ThreadPoolExecutor(1, "generate")

    def write(self, row: Row, send: Callable[[], None]) -> None:
        """Returns when the row's answer is written.

        Args:
            send: called right before; what it raises concerns this row alone.

        Raises:
            Exception: whatever `send` or the generation of the row's batch raised.
        """
        mine = _Waiting(row, send)
        with self._lock:
            self._waiting.append(mine)
        try:
            self._worker.submit(
                self._next_batch
            )  # One a row: none is left over, and some find nothing to do.
            mine.done.result()
        except BaseException:
            mine.done.cancel()  # An interrupted thread's row is not generated any more.
            raise

    def _next_batch(self) -> None:
        self._gather()
        going = [one for one in self._take() if _sent(one)]
        if not going:
            return
        try:
            self._write([one.row for one in going])
        except BaseException as error:
            for one in going:
                one.done.set_exception(error)
        else:
            for one in going:
                one.done.set_result(None)

    def _gather(self) -> None:
        """Waits for company while some arrives: those whose answers are just there soon ask again."""
        seen = 0
        while seen < len(self._waiting) < self._size:
            seen = len(self._waiting)
            time.sleep(PATIENCE)

    def _take(self) -> list[_Waiting]:
        with self._lock:
            if not self._waiting:
                return []
            first = self._waiting[0].row
            ordered = sorted(self._waiting, key=lambda one: _distance(first, one.row))  # stable
            taken = ordered[: self._size]
            self._waiting = [one for one in self._waiting if one not in taken]
        return taken


def _distance(first: Row, other: Row) -> tuple[bool, bool, int]:
    return other is not first, other.step != first.step, abs(len(other.prompt) - len(first.prompt))


def _sent(one: _Waiting) -> bool:
    """Announces a row; whether it is to be generated."""
    if not one.done.set_running_or_notify_cancel():
        return False
    try:
        one.send()
    except BaseException as error:
        one.done.set_exception(error)
        return False
    return True
