"""A model that says nothing: counts what a run would ask, to estimate calls, tokens and cost before it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from vispath_lit.chat.completion import prompt_estimate
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatRequest, RawAnswer, ReplyT

ANSWERED = 3  # answers take about a third of their limit
YES = {"answerable": True, "answer": "?"}


class DryRunModel:
    """Answers each step with its fallback, as if nothing were known; tokens are estimated from characters.

    An estimate, not a bound: nothing is asked twice, no answer is long, and searches start and go where the
    fallbacks lead. Of rivals it is none, as their fallbacks end the talk.

    Args:
        stops: evidence is answerable, so that a search ends at its predicted depth; else each search goes to
            its full depth.
    """

    def __init__(self, stops: bool = True) -> None:
        self._stops = stops

    @property
    def fingerprint(self) -> str:
        return f"dry run, stops={self._stops}"

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        send()
        said: BaseModel = request.fallback
        if self._stops and set(type(said).model_fields) == set(YES):
            said = said.model_copy(update=dict[str, Any](YES))
        return RawAnswer(said.model_dump_json(), prompt_estimate(request), request.max_tokens // ANSWERED)
