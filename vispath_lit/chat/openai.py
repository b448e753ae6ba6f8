"""A model behind any server that speaks the OpenAI protocol: a hosted API, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import ValidationError

from vispath_lit.chat.completion import Structured, body, prompt_estimate, read_completion
from vispath_lit.chat.http import BoundedTransport, TooLargeError
from vispath_lit.chat.patience import Patience, ServerClosedError, TransientError, retry_after
from vispath_lit.errors import ChatError, ConfigError
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatRequest, RawAnswer, ReplyT

OWN_SERVER = "https://api.openai.com/v1"
NO_KEY = "none"  # for servers that ask for none
REDACTED = "<removed>"
MAX_BODY = 2 << 20  # bytes of an answer that are read
MAX_REASON = 300  # characters of a server's error that are told
# Statuses that may pass: a time-out on the way, a conflict, too early, too many requests.
TRANSIENT = frozenset({408, 409, 425, 429})
# Errors of a 429 that no waiting mends, as it mends no 402 (payment required).
SPENT = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
# Of a request that met these the server has seen nothing.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
LADDER: tuple[Structured, ...] = ("json_schema", "json_object", "none")


@dataclass(frozen=True, slots=True)
class Account:
    """A key, by its variable's name, and the one server that it is for.

    A class of its own because a second model may share the key of the first, but only where both are on one
    server: whoever runs another server would be handed a key that is worth money elsewhere.
    """

    base_url: str | None
    api_key_env: str


class OpenAIModel:
    """The `ChatModel` of one model name on one server.

    The key comes from the environment and goes nowhere else: it is taken out of whatever a server writes.

    Args:
        model: its name on the server.
        base_url: where the server is; None is OpenAI's own.
        api_key_env: the environment variable that holds the key; None is that of `account` where it is for
            this server, and no key for any other server.
        timeout: seconds an attempt may take.
        attempts: at one request, at most.
        max_wait: seconds between two of them, at most.
        structured: how a server is told the shape of an answer; `auto` begins with its JSON schema and takes
            less where it refuses.
        limit_name: what a server calls the limit of an answer's tokens.
        options: further fields of a request's JSON; null takes one away.
        connections: to the server, at most.
        account: of the model beside this one.

    Raises:
        ConfigError: a value that cannot work, or no key where one is needed.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key_env: str | None = "OPENAI_API_KEY",
        timeout: float = 120.0,
        attempts: int = 6,
        max_wait: float = 60.0,
        structured: Literal["auto", "json_schema", "json_object", "none"] = "auto",
        limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        options: Mapping[str, Any] | None = None,
        connections: int = 64,
        account: Account | None = None,
    ) -> None:
        _check(model, timeout, attempts, max_wait)
        self._model = model
        self._url = _checked_url(base_url)
        if api_key_env is None and account is not None and _checked_url(account.base_url) == self._url:
            api_key_env = account.api_key_env
        self._key = _key(api_key_env, needed=base_url is None)
        self._structured = structured
        self._limit_name = limit_name
        self._options = dict(options or {})
        self._ladder: tuple[Structured, ...] = LADDER if structured == "auto" else (structured,)
        self._patience = Patience(attempts, max_wait)
        http = openai.DefaultHttpxClient(
            transport=BoundedTransport(timeout, MAX_BODY, connections),
            timeout=timeout,
            follow_redirects=False,
        )
        for name in ("httpx2", "httpcore2", "openai"):  # Else they log a line for each request.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._client = openai.OpenAI(
            api_key=self._key or NO_KEY, base_url=self._url, max_retries=0, timeout=timeout, http_client=http
        )

    @property
    def fingerprint(self) -> str:
        """Model, server and all settings that change what is sent, without credentials.

        As configured, not as the ladder has come down: what a server refuses must not rename its answers.
        """
        options = json.dumps(self._options, sort_keys=True, default=str)
        way = f"{self._structured} {self._limit_name} {options}"
        return f"openai {self._model} {_without_credentials(self._url)} {way}"

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        """The model's answer; one that is too long to be one is empty."""
        ladder = self._ladder
        for place, structured in enumerate(ladder):
            try:
                answer = self._patience.through(partial(self._attempt, request, structured, send))
            except TooLargeError:
                answer = RawAnswer("", prompt_estimate(request), request.max_tokens)
            except _RefusedError as error:
                if place + 1 == len(ladder):
                    raise ChatError(f"the server refuses the request: {error}") from error
                continue
            self._ladder = (
                structured,
            )  # What it took once it takes again, and a refusal is the request's own.
            return answer
        raise AssertionError("a ladder has at least one rung")

    def _attempt(self, request: ChatRequest[ReplyT], structured: Structured, send: Sending) -> RawAnswer:
        fields = body(request, structured, self._limit_name, self._options)
        messages = fields.pop("messages")
        send()
        try:
            raw = self._client.chat.completions.with_raw_response.create(
                model=self._model, messages=messages, extra_body=fields
            )
        except openai.APIStatusError as error:
            raise self._told(error) from error
        except openai.APIConnectionError as error:  # Time-outs are among them.
            if isinstance(error.__cause__, NOT_SENT):
                send.undo()
            cause = self._clean(f"{type(error.__cause__).__name__} {error.__cause__}")
            raise TransientError(f"the connection failed ({cause})") from error
        try:
            answer = read_completion(raw.content, request)
        except ValidationError as error:
            raise TransientError("what the server sent is no chat completion") from error
        return replace(answer, text=self._without_key(answer.text))

    def _told(self, error: openai.APIStatusError) -> Exception:
        """What a status means for the attempt."""
        status = error.status_code
        reason = f"status {status}, {self._clean(error.message)}"
        if status == 401:
            return ConfigError(
                f"{_without_credentials(self._url)} does not take the key ({reason}); set the environment "
                "variable that chat.api_key_env (or chat.vision_api_key_env) names"
            )
        if status == 404:
            return ConfigError(
                f"{_without_credentials(self._url)} has no model {self._model!r} ({reason}); see to "
                "chat.model and chat.base_url, which ends in /v1 for most servers"
            )
        if status == 402 or (status == 429 and error.code in SPENT):
            return ServerClosedError(
                f"the account's quota is used up ({reason}), and nothing more is sent; the same command goes "
                "on once there is more"
            )
        if status in TRANSIENT or status >= 500:
            return TransientError(reason, retry_after(error.response.headers))
        return _RefusedError(reason) if status in (400, 422) else ChatError(f"the server refuses: {reason}")

    def _clean(self, text: str) -> str:
        return self._without_key(" ".join(text.split()))[:MAX_REASON]

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, REDACTED) if self._key else text


class _RefusedError(Exception):
    """The server calls the request malformed: it may know no such way to ask for a shape."""


def _check(model: str, timeout: float, attempts: int, max_wait: float) -> None:
    if not model.strip():
        raise ConfigError("chat.model is empty; name a model of the server")
    for key, value, low in (("timeout", timeout, 0), ("max_wait", max_wait, 0), ("attempts", attempts, 1)):
        if not low <= value < float("inf") or (key == "timeout" and not value):
            raise ConfigError(
                f"chat.{key} is {value}; it must be {'above' if key == 'timeout' else 'at least'} {low}"
            )


def _checked_url(base_url: str | None) -> str:
    """The server's address.

    Raises:
        ConfigError: no address of the web.
    """
    url = base_url or os.environ.get("OPENAI_BASE_URL") or OWN_SERVER
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # Brackets without an address in them, a port that is no number.
        usable = False
    if not usable:
        raise ConfigError(
            f"chat.base_url is {_without_credentials(url)!r}; expected http(s)://HOST[:PORT]/v1"
        )
    return url.rstrip("/")


def _key(variable: str | None, needed: bool) -> str:
    """The key that an environment variable holds; empty where there is none and none is needed.

    Raises:
        ConfigError: it is needed and not set, or what should be its name is none.
    """
    if variable is None:
        if needed:
            raise ConfigError(
                "the vision model's server needs a key, and that of chat.base_url is not sent to another "
                "server; name its environment variable with chat.vision_api_key_env, such as OPENAI_API_KEY"
            )
        return ""
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", variable):  # It may be the key itself: it is not repeated.
        raise ConfigError(
            "chat.api_key_env and chat.vision_api_key_env must be the NAME of an environment variable, such "
            "as OPENAI_API_KEY; keys never go into a config"
        )
    key = os.environ.get(variable, "").strip()
    if not key and needed:
        raise ConfigError(f"the environment variable {variable} is not set; it holds the key of the server")
    return key


def _without_credentials(url: str) -> str:
    """The address without user and password, which may hold an @ themselves, and without a query."""
    return re.sub(r"(?<=://)[^/?#]*@", "", url.partition("?")[0])
