"""What a model is told whose answer was not valid: its own words and the error, both as data."""

from __future__ import annotations

from dataclasses import replace

from vispath_lit.chat.quoting import escaped, quote
from vispath_lit.types import ChatMessage, ChatRequest, ReplyT

REASK = (
    "That is not what was asked for: {error}. Answer again, with one JSON object of the required shape and "
    "nothing else."
)


def reask(request: ChatRequest[ReplyT], answer: str, error: str) -> ChatRequest[ReplyT]:
    """The same request with the invalid answer and what is wrong with it.

    A model repeats labels, and errors repeat keys of its answer: neither may end its turn and begin another.
    """
    turns = (
        ChatMessage("assistant", (escaped(answer) or "(nothing)",)),
        ChatMessage("user", (REASK.format(error=quote({"error": error})),)),
    )
    return replace(request, messages=(*request.messages, *turns))
