"""How much may be sent: counted before it goes out, so that no race sends one request too many."""

from __future__ import annotations

import threading

from vispath_lit.errors import ChatError, ConfigError


class Budget:
    """Requests and tokens of this process, with their limits; safe to use from several threads.

    Args:
        max_calls: requests that may go out, retries included; None is no limit.
        max_tokens: tokens from which nothing more goes out; what is under way then ends. None is no limit.
        earlier_calls: requests that count against the limit already: of the run before it was killed.
        earlier_tokens: the same of tokens.
    """

    def __init__(
        self,
        max_calls: int | None,
        max_tokens: int | None,
        earlier_calls: int = 0,
        earlier_tokens: int = 0,
    ) -> None:
        for key, value in (("max_calls", max_calls), ("max_tokens", max_tokens)):
            if value is not None and value < 1:
                raise ConfigError(f"chat.{key} is {value}; it must be at least 1, or null for no limit")
        self._max_calls = max_calls
        self._max_tokens = max_tokens
        self._earlier_calls = earlier_calls
        self._earlier_tokens = earlier_tokens
        self._requests = 0
        self._tokens = 0
        self._prompt_tokens = 0
        self._hits = 0
        self._closed = ""
        self._lock = threading.Lock()

    def spend_call(self) -> None:
        """Counts one request that is about to be sent.

        Raises:
            ChatError: a budget is used up; the request must not be sent.
        """
        with self._lock:
            if self._closed:
                raise ChatError(self._closed)
            for key, limit, used in (
                ("max_calls", self._max_calls, self._earlier_calls + self._requests),
                ("max_tokens", self._max_tokens, self._earlier_tokens + self._tokens),
            ):
                if limit is not None and used >= limit:
                    raise ChatError(
                        f"chat.{key}={limit} is used up: this run has come to {used} in all of its sessions; "
                        f"the same command with a higher chat.{key} goes on with the failed questions"
                    )
            self._requests += 1

    def close(self, reason: str) -> None:
        """Nothing more goes out; the first reason is the one that is told."""
        with self._lock:
            self._closed = self._closed or reason

    def unspend_call(self) -> None:
        """The request was not sent after all."""
        with self._lock:
            self._requests -= 1

    def spend_tokens(self, prompt: int, answer: int) -> None:
        """Counts the tokens of an answer that came, and of its prompt."""
        with self._lock:
            self._prompt_tokens += prompt
            self._tokens += prompt + answer

    def hit(self) -> None:
        """Counts an answer that the cache had."""
        with self._lock:
            self._hits += 1

    def usage(self) -> dict[str, int]:
        """`requests` sent, `cache_hits`, and `tokens` of the answers that came, of them `prompt_tokens`."""
        with self._lock:
            return {
                "requests": self._requests,
                "cache_hits": self._hits,
                "tokens": self._tokens,
                "prompt_tokens": self._prompt_tokens,
            }
