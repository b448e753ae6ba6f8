"""An HTTP transport for servers that nobody vouches for: answers are bounded in bytes and time."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2

# Seconds that an idle connection is used again. Servers close theirs after five or more, and a request that
# goes out on one which the server is just closing is lost.
KEEP_ALIVE = 2.0


class TooLargeError(Exception):
    """A body longer than an answer can be."""


class TooSlowError(httpx2.ReadTimeout):
    """A body that comes in drops."""


class BoundedTransport(httpx2.BaseTransport):
    """Hands requests on, and reads at most `max_bytes` of a body, within `timeout` seconds of its request.

    Compressed bodies are refused: what they grow to cannot be bounded before it is there.
    """

    def __init__(self, timeout: float, max_bytes: int, connections: int) -> None:
        limits = httpx2.Limits(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=KEEP_ALIVE,
        )
        self._inner = httpx2.HTTPTransport(limits=limits)
        self._timeout = timeout
        self._max_bytes = max_bytes

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["Accept-Encoding"] = "identity"
        deadline = time.monotonic() + self._timeout
        response = self._inner.handle_request(request)
        if response.headers.get("Content-Encoding", "identity") != "identity":
            response.close()
            raise httpx2.DecodingError("the body is compressed, which was not asked for")
        assert isinstance(response.stream, httpx2.SyncByteStream)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Bounded(response.stream, deadline, self._max_bytes, response.is_success),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._inner.close()


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, deadline: float, left: int, strict: bool) -> None:
        self._stream = stream
        self._deadline = deadline
        self._left = left
        self._strict = strict

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                if self._strict:
                    raise TooLargeError
                return  # Of an error the beginning tells enough.
            if time.monotonic() > self._deadline:
                raise TooSlowError("the answer comes too slowly")
            yield chunk

    def close(self) -> None:
        self._stream.close()
