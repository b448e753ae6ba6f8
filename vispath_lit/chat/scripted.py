"""A model that says what it was told to say: for tests, and to try a prompt's way through the code."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import xxhash
from pydantic import BaseModel

from vispath_lit.errors import ChatError
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatRequest, RawAnswer, ReplyT

Said = BaseModel | Mapping[str, Any] | str
Script = Callable[[ChatRequest[Any]], Said | None]


class ScriptedModel:
    """Answers by step, or by a function of the whole request.

    Texts are said as they are, so that a script can also say what is not valid; all else becomes JSON.

    Args:
        answers: step to what is said at it, or a function of the request; None, or a step that is missing, is
            a model that gives out.
    """

    def __init__(self, answers: Mapping[str, Any] | Script) -> None:
        self._answers = answers
        self.requests: list[ChatRequest[Any]] = []  # everything that was asked, in order

    @property
    def fingerprint(self) -> str:
        """The content of a table; a function has no content to hash."""
        if callable(self._answers):
            return "scripted"
        content = json.dumps({step: _text(said) for step, said in self._answers.items()}, sort_keys=True)
        return f"scripted-{xxhash.xxh3_64_hexdigest(content.encode())}"

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        send()
        self.requests.append(request)
        said = self._answers(request) if callable(self._answers) else self._answers.get(request.step)
        if said is None:
            raise ChatError(f"the script has no answer for the step {request.step!r}; add one")
        text = _text(said)
        words = sum(
            len(part.split()) for one in request.messages for part in one.parts if isinstance(part, str)
        )
        return RawAnswer(text, words, len(text.split()))


def _text(said: Said) -> str:
    if isinstance(said, str):
        return said
    return (
        said.model_dump_json() if isinstance(said, BaseModel) else json.dumps(dict(said), ensure_ascii=False)
    )
