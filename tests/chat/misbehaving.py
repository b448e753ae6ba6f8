"""A local server that speaks the OpenAI protocol, and misbehaves as it is told."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What the server does with a request: "ok", a status ("429", "500", "400", "401", "402"), "quota" (a 429 for
# good), "timeout", "reset", "cut" (a body cut short), "broken" (the model's JSON cut short), "schema" (JSON
# of another shape), "huge" (10 MB), "html".
Fault = str
HUGE = "x" * (10 << 20)


@dataclass
class Log:
    """What came in, seen from the server's side."""

    requests: int = 0
    tokens: int = 0  # of the answers that it sent whole
    faults: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    busy: int = 0
    busiest: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass
class Server:
    url: str
    log: Log


@contextmanager
def serve(
    say: Callable[[dict[str, Any]], str],
    fault: Callable[[int, dict[str, Any]], Fault] = lambda number, body: "ok",
    seconds: float = 0.0,
    hang: float = 1.0,
) -> Iterator[Server]:
    """Answers on a free port of this machine until the block ends.

    Args:
        say: the content of an answer, from the body of its request.
        fault: what is done with the n-th request, from 0.
        seconds: that each answer takes.
        hang: seconds that a time-out takes.
    """
    log = Log()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with log.lock:
                number, log.requests = log.requests, log.requests + 1
                log.bodies.append(body)
                log.headers.append({name.lower(): value for name, value in self.headers.items()})
                log.busy += 1
                log.busiest = max(log.busiest, log.busy)
            try:
                kind = fault(number, body)
                with log.lock:
                    log.faults[kind] += 1
                time.sleep(seconds)
                self._do(kind, body)
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                with log.lock:
                    log.busy -= 1

        def _do(self, kind: Fault, body: dict[str, Any]) -> None:
            if kind == "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
            elif kind == "timeout":
                time.sleep(hang)
                self.close_connection = True
            elif kind in ("429", "500", "400", "401", "402", "quota"):
                status = 429 if kind == "quota" else int(kind)
                code = "insufficient_quota" if kind == "quota" else f"code {kind}"
                told = {"error": {"message": f"told {kind} {self.headers['Authorization']}", "code": code}}
                self._send(
                    status, json.dumps(told).encode(), {"Retry-After": "0.05"} if kind == "429" else {}
                )
            elif kind == "html":
                self._send(200, b"<html>proxy</html>", {})
            else:
                self._answer(kind, body)

        def _answer(self, kind: Fault, body: dict[str, Any]) -> None:
            content = say(body)
            content = {
                "broken": content[: len(content) // 2].split(":")[0],
                "schema": '{"something": "else"}',
                "huge": HUGE,
            }.get(kind, content)
            usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
            whole = {
                "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}],
                "usage": usage,
            }
            data = json.dumps(
                {"id": "a", "object": "chat.completion", "created": 1, "model": "m"} | whole
            ).encode()
            if kind == "cut":
                self.send_response(200)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data[: len(data) // 2])
                self.close_connection = True
                return
            if kind != "huge":
                with log.lock:
                    log.tokens += 18
            self._send(200, data, {})

        def _send(self, status: int, data: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        request_queue_size = 128

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that hangs up is no news."""

    server = Quiet(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield Server(f"http://127.0.0.1:{server.server_address[1]}/v1", log)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
