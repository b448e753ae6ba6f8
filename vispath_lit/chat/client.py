"""What prompted parts ask: many requests side by side, each with a valid answer or its stated fallback."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from vispath_lit.chat.budget import Budget
from vispath_lit.chat.keys import request_key
from vispath_lit.chat.ledger import Ledger
from vispath_lit.chat.parsing import InvalidAnswerError, parse
from vispath_lit.chat.patience import ServerClosedError
from vispath_lit.chat.prompt import prompts_fingerprint
from vispath_lit.chat.reasking import reask
from vispath_lit.chat.store import AnswerStore
from vispath_lit.chat.unseen import UNSEEN, without_pictures
from vispath_lit.errors import ChatError, ConfigError
from vispath_lit.protocols import ChatModel
from vispath_lit.types import Bill, ChatReply, ChatRequest, Query, RawAnswer, ReplyT


class ChatClient:
    """The `ChatBackend`: models with everything around them.

    An answer that is not valid is repaired; where that fails the model is asked once more with the error in
    words; where that fails too the request's fallback is taken and counted.

    Where a server gives out for good (`ServerClosedError`) nothing more is sent, to either model: a question
    that lacks one of its answers has failed.

    Every answer is kept by the content of its request, and requests of one content are sent once, also where
    they are under way at the same time.

    Args:
        text: the model of requests without pictures.
        vision: the model of requests with pictures; None is the text model.
        concurrency: requests under way at once, at most.
        max_calls: requests that this process may send, retries included, less those of the run's earlier
            sessions; None is no limit.
        max_tokens: tokens after which nothing more is sent, earlier sessions' included; None is no limit.
        cache_dir: answers are kept below it; None keeps them in memory.
        run: what tells the requests of a run, in all of its sessions, from others in the log.
        blind: pictures are left out, and the text model is asked what it says without seeing.
    """

    def __init__(
        self,
        text: ChatModel,
        vision: ChatModel | None = None,
        concurrency: int = 16,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        cache_dir: Path | str | None = None,
        run: str = "",
        blind: bool = False,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"chat.concurrency is {concurrency}; it must be at least 1")
        self._text = text
        self._vision = vision or text
        self._blind = blind
        self._ledger = Ledger()
        self._store = AnswerStore(None if cache_dir is None else Path(cache_dir) / "chat")
        self._run = _mark(run, text) if run else ""
        self._earlier = self._store.sent_by(self._run) if run else 0
        tokens = self._store.tokens_of(self._run) if run else 0
        self._budget = Budget(max_calls, max_tokens, self._earlier, tokens)
        self._under_way: dict[str, Future[RawAnswer]] = {}
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(concurrency, "chat")

    @property
    def fingerprint(self) -> str:
        """The models, whether they see, and the wording of all prompts."""
        vision = f"blind: {UNSEEN}" if self._blind else self._vision.fingerprint
        return f"{self._text.fingerprint} | {vision} | prompts {prompts_fingerprint()}"

    def complete(self, requests: Sequence[ChatRequest[ReplyT]]) -> list[ChatReply[ReplyT]]:
        """One reply a request, in order."""
        try:
            shown = [without_pictures(one) for one in requests] if self._blind else requests
            return list(self._pool.map(self._one, shown))
        except BaseException:
            self._budget.close("interrupted")  # What waits to be sent is not sent.
            raise

    def settle(self, queries: Sequence[Query]) -> list[Bill]:
        return self._ledger.settle(queries)

    def usage(self) -> Mapping[str, int]:
        return {**self._budget.usage(), "earlier_requests": self._earlier, **self._ledger.steps()}

    def _one(self, request: ChatRequest[ReplyT]) -> ChatReply[ReplyT]:
        reason = self._ledger.gave_out(request.query)
        reply = ChatReply(request.fallback, "failed", 0, reason=reason) if reason else self._asked(request)
        self._ledger.note(request, reply)
        return reply

    def _asked(self, request: ChatRequest[ReplyT]) -> ChatReply[ReplyT]:
        """The reply after at most two answers of the model."""
        calls = tokens = 0
        cached = True
        asked = request
        for last in (False, True):
            try:
                answer, hit = self._answer(asked)
            except ChatError as error:
                if isinstance(error, ServerClosedError):
                    self._budget.close(str(error))  # Every further request would be one more refusal.
                return ChatReply(request.fallback, "failed", calls, tokens, reason=str(error))
            calls, tokens = calls + 1, tokens + answer.prompt_tokens + answer.answer_tokens
            cached = cached and hit
            try:
                return ChatReply(parse(answer.text, request.reply), "answered", calls, tokens, cached)
            except InvalidAnswerError as error:
                told = str(error)
                if not last:
                    asked = reask(request, answer.text, told)
        return ChatReply(request.fallback, "fallback", calls, tokens, cached, told)

    def _answer(self, request: ChatRequest[ReplyT]) -> tuple[RawAnswer, bool]:
        """The model's answer, and whether it was there already."""
        model = self._vision if request.images else self._text
        key = request_key(request, model.fingerprint)
        with self._lock:
            mine = (future := self._under_way.get(key)) is None
            if future is None:
                future = self._under_way[key] = Future()
        if not mine:
            answer = future.result()
            self._budget.hit()
            return answer, True
        try:
            kept = self._store.get(key)
            answer = kept or self._fresh(request, model, key)
            if kept:
                self._budget.hit()
            future.set_result(answer)
        except BaseException as error:
            future.set_exception(error)
            raise
        finally:
            with self._lock:
                del self._under_way[key]
        return answer, kept is not None

    def _fresh(self, request: ChatRequest[ReplyT], model: ChatModel, key: str) -> RawAnswer:
        answer = model.ask(request, _Counted(self._budget, self._store, key, request.step, self._run))
        self._budget.spend_tokens(answer.prompt_tokens, answer.answer_tokens)
        self._store.put(key, answer)
        return answer


@dataclass(frozen=True, slots=True)
class _Counted:
    """Counts in the budget and in the log."""

    budget: Budget
    store: AnswerStore
    key: str
    step: str
    run: str

    def __call__(self) -> None:
        self.budget.spend_call()
        self.store.sent(self.key, self.step, self.run)

    def undo(self) -> None:
        self.store.unsent(self.key)
        self.budget.unspend_call()


def _mark(run: str, model: ChatModel) -> str:
    """A hash: whose disk a run lies on is nobody's business. A dry run in the same folder is another run."""
    words = f"{type(model).__name__} {run}".encode("utf8", "surrogateescape")
    return blake2b(words, digest_size=8).hexdigest()
