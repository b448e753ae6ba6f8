"""One small step for the tests of the back ends."""

from __future__ import annotations

from PIL.Image import Image
from pydantic import BaseModel, Field

from vispath_lit.types import ChatMessage, ChatRequest, Query


class Pick(BaseModel):
    """What the step answers with."""

    choice: int = Field(ge=0, le=9)
    why: str = ""


def request(
    text: str = "pick one", query: Query | None = None, image: Image | None = None, step: str = "pick"
) -> ChatRequest[Pick]:
    parts = (text,) if image is None else (text, image)
    messages = (ChatMessage("system", ("Answer in JSON.",)), ChatMessage("user", parts))
    return ChatRequest(step, messages, Pick, Pick(choice=0, why="fallback"), query)
