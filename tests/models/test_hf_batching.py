"""Rows of several threads become batches; what goes wrong with one is not another's affair."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import pytest

from vispath_lit.errors import ChatError
from vispath_lit.models.backbones.hf_batching import Batches
from vispath_lit.models.backbones.hf_decoding import Row


def row(length: int, step: str = "pick") -> Row:
    nothing: Any = None
    return Row(step, [0] * length, nothing, 0.0, 1)


class Held:
    """A model that notes its batches; the first waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[list[Row]] = []
        self.begun = threading.Event()
        self.go = threading.Event()

    def __call__(self, rows: Sequence[Row]) -> None:
        self.batches.append(list(rows))
        self.begun.set()
        assert self.go.wait(60)
        for one in rows:
            one.written = [len(one.prompt)]
        if any(one.step == "broken" for one in rows):
            raise RuntimeError("out of memory")


def asked_behind_another(
    held: Held, batches: Batches, rows: Sequence[Row], send: Callable[[Row], None]
) -> list[Future[None]]:
    """All rows asked for while another one is generated; returns when all are answered."""
    with ThreadPoolExecutor(len(rows) + 1) as pool:
        pool.submit(batches.write, row(1), lambda: None)
        assert held.begun.wait(60)
        futures = []
        for count, one in enumerate(rows, 1):
            futures.append(pool.submit(batches.write, one, partial(send, one)))
            while len(batches._waiting) < count:  # in this order
                wait(futures, 0.001)
        held.go.set()
    return futures


def sizes(held: Held) -> list[list[int]]:
    return [[len(one.prompt) for one in rows] for rows in held.batches[1:]]


def test_the_oldest_is_generated_with_those_of_its_length() -> None:
    held = Held()
    rows = [row(50), row(900), row(55), row(10), row(48), row(901), row(40)]
    asked_behind_another(held, Batches(3, held), rows, lambda _: None)
    assert sizes(held) == [[50, 48, 55], [900, 901, 40], [10]]
    assert all(one.written == [len(one.prompt)] for one in rows)


def test_requests_of_a_step_go_together() -> None:
    held = Held()
    rows = [row(50, "a"), row(50, "b"), row(90, "a"), row(60, "b")]
    asked_behind_another(held, Batches(2, held), rows, lambda _: None)
    assert sizes(held) == [[50, 90], [50, 60]]


def test_a_request_that_may_not_be_sent_fails_alone() -> None:
    held = Held()
    sent = []

    def send(one: Row) -> None:
        if len(one.prompt) == 4:
            raise ChatError("the budget is used up")
        sent.append(len(one.prompt))

    found = asked_behind_another(held, Batches(8, held), [row(3), row(4), row(5)], send)
    assert sizes(held) == [[3, 5]]
    assert sent == [3, 5]
    assert [type(future.exception()) for future in found] == [type(None), ChatError, type(None)]


def test_a_batch_that_fails_leaves_nobody_waiting() -> None:
    held = Held()
    found = asked_behind_another(
        held, Batches(2, held), [row(3, "broken"), row(4, "broken"), row(5)], lambda _: None
    )
    assert [type(future.exception()) for future in found] == [RuntimeError, RuntimeError, type(None)]


def test_a_thread_that_is_interrupted_takes_its_row_along(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held()
    batches = Batches(8, held)

    def interrupted(self: Future[None], timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    with ThreadPoolExecutor(2) as pool:
        pool.submit(batches.write, row(1), lambda: None)
        assert held.begun.wait(60)
        with monkeypatch.context() as patch:
            patch.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                batches.write(row(2), lambda: None)
        last = pool.submit(batches.write, row(3), lambda: None)
        held.go.set()
        last.result(60)
    assert sizes(held) == [[3]]


def test_a_batch_of_one_is_one_request_at_a_time() -> None:
    held = Held()
    asked_behind_another(held, Batches(1, held), [row(3), row(9), row(3)], lambda _: None)
    assert sizes(held) == [[3], [9], [3]]


def test_a_batch_has_a_whole_number_of_rows() -> None:
    with pytest.raises(TypeError, match="float"):
        Batches(2.5, lambda rows: None)  # type: ignore[arg-type]
