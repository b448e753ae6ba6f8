"""What prompted parts ask: many requests side by side, each with a valid answer or its stated fallback."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from vispath_lit.chat.budget import Budget
from vispath_lit.chat.ledger import Ledger
from vispath_lit.chat.parsing import InvalidAnswerError, parse
from vispath_lit.errors import ChatError, ConfigError
from vispath_lit.protocols import ChatModel
from vispath_lit.types import Bill, ChatMessage, ChatReply, ChatRequest, Query, RawAnswer, ReplyT

REASK = (
    "That is not what was asked for: {error}. Answer again, with one JSON object of the required shape and "
    "nothing else."
)
MAX_SHOWN = 2_000  # characters of an invalid answer that the model is shown again


class ChatClient:
    """The `ChatBackend`: models with everything around them.

    An answer that is not valid is repaired; where that fails the model is asked once more with the error in
    words; where that fails too the request's fallback is taken and counted.

    Args:
        text: the model of requests without pictures.
        vision: the model of requests with pictures; None is the text model.
        concurrency: requests under way at once, at most.
        max_calls: requests that this process may send, retries included; None is no limit.
        max_tokens: tokens after which nothing more is sent; None is no limit.
    """

    def __init__(
        self,
        text: ChatModel,
        vision: ChatModel | None = None,
        concurrency: int = 16,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"chat.concurrency is {concurrency}; it must be at least 1")
        self._text = text
        self._vision = vision or text
        self._budget = Budget(max_calls, max_tokens)
        self._ledger = Ledger()
        self._pool = ThreadPoolExecutor(concurrency, "chat")

    @property
    def fingerprint(self) -> str:
        return f"{self._text.fingerprint} {self._vision.fingerprint}"

    def complete(self, requests: Sequence[ChatRequest[ReplyT]]) -> list[ChatReply[ReplyT]]:
        """One reply a request, in order."""
        return list(self._pool.map(self._one, requests))

    def settle(self, queries: Sequence[Query]) -> list[Bill]:
        return self._ledger.settle(queries)

    def usage(self) -> Mapping[str, int]:
        return {**self._budget.usage(), **self._ledger.steps()}

    def _one(self, request: ChatRequest[ReplyT]) -> ChatReply[ReplyT]:
        reason = self._ledger.gave_out(request.query)
        reply = ChatReply(request.fallback, "failed", 0, reason=reason) if reason else self._asked(request)
        self._ledger.note(request, reply)
        return reply

    def _asked(self, request: ChatRequest[ReplyT]) -> ChatReply[ReplyT]:
        """The reply after at most two answers of the model."""
        calls = tokens = 0
        asked = request
        for last in (False, True):
            try:
                answer = self._answer(asked)
            except ChatError as error:
                return ChatReply(request.fallback, "failed", calls, tokens, reason=str(error))
            calls, tokens = calls + 1, tokens + answer.prompt_tokens + answer.answer_tokens
            try:
                return ChatReply(parse(answer.text, request.reply), "answered", calls, tokens)
            except InvalidAnswerError as error:
                told = str(error)
                if not last:
                    asked = reask(request, answer.text, told)
        return ChatReply(request.fallback, "fallback", calls, tokens, reason=told)

    def _answer(self, request: ChatRequest[ReplyT]) -> RawAnswer:
        model = self._vision if request.images else self._text
        answer = model.ask(request, self._budget.spend_call)
        self._budget.spend_tokens(answer.prompt_tokens + answer.answer_tokens)
        return answer


def reask(request: ChatRequest[ReplyT], answer: str, error: str) -> ChatRequest[ReplyT]:
    """The same request with the invalid answer and what is wrong with it."""
    turns = (
        ChatMessage("assistant", (answer[:MAX_SHOWN] or "(nothing)",)),
        ChatMessage("user", (REASK.format(error=error),)),
    )
    return replace(request, messages=(*request.messages, *turns))
