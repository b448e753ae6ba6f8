"""Requests for a model that cannot see: the pictures are left out, and the model is told so."""

from __future__ import annotations

from dataclasses import replace

from vispath_lit.types import ChatRequest, ReplyT

UNSEEN = "(a picture that cannot be shown to you)"


def without_pictures(request: ChatRequest[ReplyT]) -> ChatRequest[ReplyT]:
    """The same request with words in the place of each picture."""
    messages = tuple(
        replace(one, parts=tuple(part if isinstance(part, str) else UNSEEN for part in one.parts))
        for one in request.messages
    )
    return replace(request, messages=messages)
