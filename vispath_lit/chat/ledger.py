"""What each question has cost so far, and whether a back end gave out on it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from vispath_lit.types import Bill, ChatReply, ChatRequest, Cost, Query, ReplyT


class Ledger:
    """Bills by question, and counts by step; safe to use from several threads.

    A question is known by the very `Query` object: two equal questions are two bills.
    """

    def __init__(self) -> None:
        self._bills: dict[int, tuple[Query, Bill]] = {}
        self._steps: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, request: ChatRequest[ReplyT], reply: ChatReply[ReplyT]) -> None:
        """Charges a reply to the question that asked for it."""
        seen = bool(request.images)
        with self._lock:
            self._steps[f"{request.step}.calls"] += reply.calls
            self._steps[f"{request.step}.{reply.outcome}"] += 1
            if (query := request.query) is None:
                return
            bill = self._bills.get(id(query), (query, Bill()))[1]
            cost = Cost(
                llm_calls=bill.cost.llm_calls + (0 if seen else reply.calls),
                vlm_calls=bill.cost.vlm_calls + (reply.calls if seen else 0),
                text_tokens=bill.cost.text_tokens + reply.tokens,
            )
            failed = bill.failed or (reply.reason if reply.outcome == "failed" else "")
            self._bills[id(query)] = (query, Bill(cost, failed))

    def gave_out(self, query: Query | None) -> str:
        """Why the back end gave out on a question before; empty where it did not."""
        with self._lock:
            return "" if query is None or id(query) not in self._bills else self._bills[id(query)][1].failed

    def settle(self, queries: Sequence[Query]) -> list[Bill]:
        """The bills of these questions, which are then closed; one that asked nothing has an empty one."""
        with self._lock:
            return [self._bills.pop(id(query), (query, Bill()))[1] for query in queries]

    def steps(self) -> dict[str, int]:
        """`<step>.calls`, `.answered`, `.fallback` and `.failed` over all questions, by name."""
        with self._lock:
            return dict(sorted(self._steps.items()))
