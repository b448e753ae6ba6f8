"""The few fields of an OpenAI chat completion that are read, and what is sent."""

from __future__ import annotations

import base64
import json
from io import BytesIO
from typing import Any, Literal

from PIL import Image
from pydantic import BaseModel, Field, ValidationError

from vispath_lit.chat.parsing import json_schema
from vispath_lit.types import ChatMessage, ChatRequest, RawAnswer, ReplyT

Structured = Literal["json_schema", "json_object", "none"]
CHARACTERS_A_TOKEN = 4  # where a server counts no tokens
TOKENS_A_PICTURE = 1_000  # the same
QUALITY = 95


class _Part(BaseModel):
    text: str = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None

    @property
    def text(self) -> str:
        """The content, or the texts of its parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class _Choice(BaseModel):
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0, le=100_000_000)
    completion_tokens: int = Field(ge=0, le=100_000_000)


class _Counted(BaseModel):
    usage: _Usage


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)


def read_completion(body: bytes, request: ChatRequest[ReplyT]) -> RawAnswer:
    """What a server answered; a refusal or no content at all is an empty text.

    Raises:
        ValidationError: a body that is no chat completion.
    """
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError:
        body = _plain(body)
        completion = _Completion.model_validate_json(body)
    text = completion.choices[0].message.text
    try:
        usage = _Counted.model_validate_json(body).usage
    except ValueError:
        return estimated(text, request)
    return RawAnswer(text, usage.prompt_tokens, usage.completion_tokens)


def _plain(body: bytes) -> bytes:
    """The body without what no text holds: a byte order mark, broken bytes, halves of characters.

    Models write halves of an emoji, and would at the next attempt.
    """
    try:
        found = json.loads(body.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return body
    return json.dumps(found, ensure_ascii=False).encode("utf8", "replace")


def estimated(text: str, request: ChatRequest[ReplyT]) -> RawAnswer:
    """An answer with guessed tokens, where nobody has counted them."""
    return RawAnswer(text, prompt_estimate(request), -(-len(text) // CHARACTERS_A_TOKEN))


def prompt_estimate(request: ChatRequest[ReplyT]) -> int:
    """About how many tokens a request has."""
    parts = [part for one in request.messages for part in one.parts]
    characters = sum(len(part) for part in parts if isinstance(part, str))
    return -(-characters // CHARACTERS_A_TOKEN) + TOKENS_A_PICTURE * len(request.images)


def body(
    request: ChatRequest[ReplyT], structured: Structured, limit_name: str, options: dict[str, Any]
) -> dict[str, Any]:
    """The JSON of a request, without the model's name. An option that is None takes a field away."""
    fields: dict[str, Any] = {
        "messages": [_message(one) for one in request.messages],
        "temperature": request.temperature,
        limit_name: request.max_tokens,
    }
    if structured == "json_schema":
        shape = {"name": request.reply.__name__, "schema": json_schema(request.reply), "strict": True}
        fields["response_format"] = {"type": "json_schema", "json_schema": shape}
    elif structured == "json_object":
        fields["response_format"] = {"type": "json_object"}
    return {key: value for key, value in (fields | options).items() if value is not None}


def _message(message: ChatMessage) -> dict[str, Any]:
    """Texts alone as one string, which every server takes; with pictures as a list of parts."""
    texts = [part for part in message.parts if isinstance(part, str)]
    if len(texts) == len(message.parts):
        return {"role": message.role, "content": "\n".join(texts)}
    return {"role": message.role, "content": [_part(part) for part in message.parts]}


def _part(part: str | Image.Image) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image_url", "image_url": {"url": data_url(part)}}


def data_url(image: Image.Image) -> str:
    """A picture as a JPEG inside a URL: pixels only, no metadata."""
    buffer = BytesIO()
    image.convert("RGB").save(buffer, "JPEG", quality=QUALITY, subsampling=0)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"
