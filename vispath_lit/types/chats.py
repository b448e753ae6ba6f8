"""What passes between a prompted step and a language model: requests, replies, the bill."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

from PIL.Image import Image
from pydantic import BaseModel

from vispath_lit.types.predictions import Cost
from vispath_lit.types.questions import Query

ReplyT = TypeVar("ReplyT", bound=BaseModel)
ChatRole = Literal["system", "user", "assistant"]
ChatOutcome = Literal["answered", "fallback", "failed"]


@dataclass(frozen=True, slots=True, eq=False)
class ChatMessage:
    """One turn of a conversation with a language model: texts and pictures in their order."""

    role: ChatRole
    parts: tuple[str | Image, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChatRequest(Generic[ReplyT]):
    """What a prompted step asks a language model.

    Attributes:
        step: the step's name, for counts ("hop_intent").
        reply: the shape that the answer must have; its JSON schema goes along where a server takes one.
        fallback: what the step goes on with where no valid answer is had.
        query: the question that pays for the call; None where none does.
        temperature: of the sampling; 0 is greedy.
        max_tokens: of the answer.
        most: items of a list in the answer that are read; None where the step sets no bound.
    """

    step: str
    messages: tuple[ChatMessage, ...]
    reply: type[ReplyT]
    fallback: ReplyT
    query: Query | None = None
    temperature: float = 0.0
    max_tokens: int = 512
    most: int | None = None

    @property
    def images(self) -> tuple[Image, ...]:
        """All pictures, in their order; a request without any goes to the text model."""
        return tuple(part for one in self.messages for part in one.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class ChatReply(Generic[ReplyT]):
    """What came of one request.

    Attributes:
        value: the parsed answer, or the request's fallback.
        outcome: `answered`; `fallback` where the model's answers were not valid, also after it was told why;
            `failed` where a budget or the back end gave out, and nothing further is asked for this question.
        calls: answers of a model that were used, a second try after an invalid one included; those that the
            cache had count too.
        tokens: of those calls, prompt and answer.
        from_cache: whether all of them came from the cache.
        reason: why it is no answer; empty for `answered`.
    """

    value: ReplyT
    outcome: ChatOutcome = "answered"
    calls: int = 1
    tokens: int = 0
    from_cache: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What the chat back end did for one question. `failed` says why it gave out; empty where it did not."""

    cost: Cost = field(default_factory=Cost)
    failed: str = ""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What a model wrote, with the tokens that it says it took."""

    text: str
    prompt_tokens: int
    answer_tokens: int
