"""What was paid for stays paid for, whatever kills the process."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_steps import Pick, request
from hypothesis import given, settings
from hypothesis import strategies as st
from misbehaving import serve
from PIL import Image
from pydantic import BaseModel

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.dry_run import DryRunModel
from vispath_lit.chat.keys import request_key
from vispath_lit.chat.scripted import ScriptedModel
from vispath_lit.chat.store import NAME, AnswerStore
from vispath_lit.errors import DataError
from vispath_lit.protocols import ChatModel
from vispath_lit.types import ChatMessage, ChatRequest, RawAnswer

RUN = """
import sys
from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.openai import OpenAIModel
from chat_steps import request

client = ChatClient(OpenAIModel("m", sys.argv[1], timeout=20.0), concurrency=16, cache_dir=sys.argv[2])
replies = client.complete([request(str(i)) for i in range(200)])
print(sum(reply.outcome == "answered" for reply in replies), client.usage()["requests"])
"""


def test_after_a_kill_no_stored_answer_is_asked_for_again(tmp_path: Path) -> None:
    def say(body: dict[str, Any]) -> str:
        return json.dumps({"choice": int(body["messages"][1]["content"]) % 10})

    with serve(say, seconds=0.05) as server:
        command = [sys.executable, "-c", RUN, server.url, str(tmp_path)]
        there = os.pathsep.join([str(Path(__file__).parent), *sys.path])
        environment = {**os.environ, "PYTHONPATH": there}
        killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        begin = time.monotonic()
        while server.log.requests < 60 and time.monotonic() - begin < 60:
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        time.sleep(0.3)  # what was under way arrives
        before = server.log.requests
        store = AnswerStore(tmp_path / "chat")
        kept = store.totals()
        assert 60 <= before < 200
        assert kept["sent"] >= before
        assert kept["open"] == kept["sent"] - kept["answers"] <= 16
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        answered, requests = map(int, done.stdout.split())
        assert answered == 200
        assert requests == server.log.requests - before == 200 - kept["answers"]
        assert store.totals() == {"sent": kept["sent"] + requests, "answers": 200, "open": 0}


@settings(max_examples=30, deadline=None)
@given(st.text(), st.integers(0, 2**40), st.integers(0, 2**40))
def test_an_answer_comes_back_as_it_was(text: str, prompt: int, answer: int) -> None:
    store = AnswerStore(None)
    assert store.get("k") is None
    store.put("k", RawAnswer(text, prompt, answer))
    store.put("k", RawAnswer("another", 0, 0))
    kept = store.get("k")
    assert kept is not None
    assert (kept.prompt_tokens, kept.answer_tokens) == (prompt, answer)
    assert kept.text == text.encode("utf8", "replace").decode("utf8")


def test_threads_and_processes_share_a_store(tmp_path: Path) -> None:
    stores = [AnswerStore(tmp_path), AnswerStore(tmp_path)]

    def work(store: AnswerStore, low: int) -> None:
        for i in range(low, low + 50):
            store.sent(str(i), "pick")
            store.put(str(i), RawAnswer(f"{i}", 1, 1))

    threads = [threading.Thread(target=work, args=(stores[i % 2], 25 * i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].totals() == {"sent": 200, "answers": 125, "open": 0}
    assert stores[1].get("100") == RawAnswer("100", 1, 1)


def test_the_requests_of_a_run_are_counted_over_its_sessions(tmp_path: Path) -> None:
    def session(run: str, text: str, model: ChatModel | None = None) -> int:
        client = ChatClient(model or ScriptedModel({"pick": {"choice": 1}}), cache_dir=tmp_path, run=run)
        client.complete([request(text)])
        return client.usage()["earlier_requests"]

    asked = [("a", "1"), ("a", "2"), ("b", "3"), ("a", "1"), ("", "4"), ("a", "5"), ("a\udcff", "6")]
    assert [session(*one) for one in asked] == [0, 1, 0, 2, 0, 2, 0]
    assert session("a", "7", DryRunModel()) == 0, "a dry run has sent nothing"
    assert session("a", "8") == 3
    assert AnswerStore(tmp_path / "chat").totals()["sent"] == 8


def test_a_budget_is_the_runs_and_not_its_sessions(tmp_path: Path) -> None:
    """A run that is killed and taken up again has spent what it has spent."""

    def session(run: str = "a", calls: int | None = None, tokens: int | None = None) -> tuple[int, list[str]]:
        model = ScriptedModel({"pick": {"choice": 1}})
        client = ChatClient(model, None, 1, calls, tokens, tmp_path, run)
        replies = client.complete([request(str(i), step="pick") for i in range(10)])
        assert client.usage()["requests"] == len(model.requests)
        return len(model.requests), [reply.reason for reply in replies if reply.outcome == "failed"]

    sent, failed = session(calls=4)
    assert (sent, len(failed)) == (4, 6)
    sent, failed = session(calls=4)
    assert (sent, len(failed)) == (0, 6), "what is kept is answered, and nothing more is sent"
    assert "chat.max_calls=4 is used up" in failed[0]
    assert "in all of its sessions" in failed[0]
    used = AnswerStore(tmp_path / "chat").totals()["sent"]
    assert session(calls=used + 2)[0] == 2
    sent, failed = session(tokens=1)
    assert (sent, len(failed)) == (0, 4)
    assert "chat.max_tokens=1 is used up" in failed[0]
    assert session("b", calls=3)[0] == 3, "another run has its own budget"


def test_a_log_from_before_runs_were_told_apart_is_read(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / NAME) as old:
        old.execute("CREATE TABLE sent (number INTEGER PRIMARY KEY, key TEXT NOT NULL, step TEXT NOT NULL)")
        old.execute("INSERT INTO sent (key, step) VALUES ('k', 'pick')")
    old.close()
    stores: list[AnswerStore] = []
    threads = [threading.Thread(target=lambda: stores.append(AnswerStore(tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.totals()["sent"] for store in stores] == [1] * 4
    stores[0].sent("l", "pick", "run")
    assert [store.sent_by("run") for store in stores] == [1] * 4


def test_a_file_that_is_no_store_is_named(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"not a database, but long enough to be taken for one" * 100)
    with pytest.raises(DataError, match=NAME):
        AnswerStore(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cache_dir"):
        AnswerStore(tmp_path / "file")


class Other(BaseModel):
    choice: int


def test_everything_that_changes_an_answer_changes_the_key() -> None:
    plain = request("one", image=Image.new("RGB", (3, 2)))
    system, user = plain.messages
    keys = [
        request_key(one, "m")
        for one in (
            plain,
            replace(plain, temperature=0.4),
            replace(plain, max_tokens=7),
            replace(plain, messages=(user, system)),
            replace(plain, messages=(system, ChatMessage("assistant", user.parts))),
            replace(plain, messages=(system, ChatMessage("user", user.parts[::-1]))),
            replace(plain, messages=(system, ChatMessage("user", ("on", "e", user.parts[1])))),
            request("one", image=Image.new("RGB", (2, 3))),
            request("one", image=Image.new("RGB", (3, 2), (0, 0, 1))),
            request("one"),
            request("two"),
        )
    ]
    red, blue = Image.new("P", (3, 2)), Image.new("P", (3, 2))
    for image, colour in ((red, [200, 0, 0]), (blue, [0, 0, 200])):
        image.putpalette(colour)  # the same bytes, other pictures
    keys += [request_key(request("one", image=image), "m") for image in (red, blue)]
    keys += [
        request_key(plain, "other"),
        request_key(replace(plain, most=3), "m"),
        request_key(replace(plain, most=4), "m"),
        request_key(ChatRequest("pick", plain.messages, Other, Other(choice=1)), "m"),
    ]
    assert len(set(keys)) == len(keys)
    same = replace(plain, step="another", fallback=Pick(choice=5))
    assert (
        request_key(same, "m") == keys[0] == request_key(request("one", image=Image.new("RGB", (3, 2))), "m")
    )


def test_an_answer_that_was_not_valid_is_kept_too(tmp_path: Path) -> None:
    first = ChatClient(ScriptedModel({"pick": "never"}), cache_dir=tmp_path)
    second = ChatClient(ScriptedModel({"pick": "never"}), cache_dir=tmp_path)
    replies = [client.complete([request()])[0] for client in (first, second)]
    assert [reply.outcome for reply in replies] == ["fallback", "fallback"]
    assert (first.usage()["requests"], second.usage()["requests"], second.usage()["cache_hits"]) == (2, 0, 2)
    assert replies[1].from_cache
    assert replies[0].tokens == replies[1].tokens
