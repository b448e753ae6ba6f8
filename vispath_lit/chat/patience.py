"""When to ask again: backoff with jitter, a server's own word (Retry-After), and when to stop asking."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TypeVar

import tenacity

from vispath_lit.errors import ChatError

T = TypeVar("T")
FIRST_WAIT = 0.5  # seconds before the second attempt, doubled for each further one, times a random number
GIVE_UP_AFTER = 16  # requests in a row that got no answer in all their attempts


class TransientError(Exception):
    """An attempt that failed in a way that may pass.

    Args:
        reason: in words, free of secrets.
        wait: seconds that the server asks to wait; None where it does not say.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class ServerClosedError(ChatError):
    """What no further request of this run can mend: a spent quota, a wait that is too long."""


class Patience:
    """Repeats attempts at one server for all threads: while it asks to wait, nobody sends.

    Args:
        attempts: at one request, at most.
        max_wait: seconds between two of them, at most; a server that asks for more is not waited for.
    """

    def __init__(self, attempts: int, max_wait: float, sleep: Callable[[float], None] = time.sleep) -> None:
        self._attempts = attempts
        self._max_wait = max_wait
        self._sleep = sleep
        self._backoff = tenacity.wait_random_exponential(multiplier=FIRST_WAIT, max=max_wait)
        self._open_from = 0.0  # of the monotonic clock
        self._failed_in_a_row = 0
        self._lock = threading.Lock()

    def through(self, attempt: Callable[[], T]) -> T:
        """The result of the first attempt that succeeds.

        Raises:
            ServerClosedError: the server asks for too long a wait, or is given up.
            ChatError: all attempts failed.
        """
        if self._failed_in_a_row >= GIVE_UP_AFTER:
            raise ServerClosedError(
                f"the server gave no answer to {GIVE_UP_AFTER} requests in a row, and nothing more is sent "
                "to it; the same command goes on once it is well"
            )
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(TransientError),
            wait=self._wait,
            stop=tenacity.stop_after_attempt(self._attempts),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            found: T = retrying(self._gated, attempt)
        except TransientError as error:
            with self._lock:
                self._failed_in_a_row += 1
            raise ChatError(f"no answer in {self._attempts} attempts, at last: {error}") from error
        with self._lock:
            self._failed_in_a_row = 0
        return found

    def _gated(self, attempt: Callable[[], T]) -> T:
        while (left := self._open_from - time.monotonic()) > 0:
            self._sleep(left)
        return attempt()

    def _wait(self, state: tenacity.RetryCallState) -> float:
        outcome = state.outcome
        error = None if outcome is None else outcome.exception()
        asked = error.wait if isinstance(error, TransientError) else None
        if asked is None:
            return self._backoff(state)
        if asked > self._max_wait:
            raise ServerClosedError(
                f"the server asks to wait {asked:.0f} seconds, more than chat.max_wait={self._max_wait:g}, "
                "and nothing more is sent to it; the same command goes on after that time"
            )
        with self._lock:
            self._open_from = max(self._open_from, time.monotonic() + asked)
        return asked + self._backoff(state)  # Not all at once when the gate opens.


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The seconds that a server asks to wait (a number, a date, milliseconds); None where it does not."""
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * scale
        except ValueError:
            continue
        if 0 <= seconds < float("inf"):
            return seconds
    try:
        until = parsedate_to_datetime(headers.get("retry-after", ""))
    except (ValueError, TypeError, OverflowError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max((until - (now or datetime.now(UTC))).total_seconds(), 0.0)
