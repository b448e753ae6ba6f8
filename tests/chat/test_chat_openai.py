"""Against a server of our own that misbehaves: nothing is lost, and the counts are those of the server."""

from __future__ import annotations

import json
import random
import threading
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from chat_steps import Pick, request
from misbehaving import serve
from PIL import Image
from pydantic import ValidationError

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.completion import read_completion
from vispath_lit.chat.openai import OpenAIModel
from vispath_lit.chat.patience import GIVE_UP_AFTER, retry_after
from vispath_lit.errors import ConfigError
from vispath_lit.launch.config import load_config
from vispath_lit.launch.parts import make, section
from vispath_lit.types import Query

KEY, OTHER_KEY = "sk-very-secret-123", "sk-of-another-server"
PICK = '{"choice": 1}'
FAULTS = ("429", "500", "timeout", "reset", "cut", "broken", "schema", "huge", "html")


def say(body: dict[str, Any]) -> str:
    """The question's own number, modulo ten."""
    number = int(body["messages"][1]["content"])
    return json.dumps({"choice": number % 10, "why": "as asked"})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def model(url: str, **values: Any) -> OpenAIModel:
    given: dict[str, Any] = {"model": "m", "base_url": url, "timeout": 10.0, "max_wait": 1.0}
    return OpenAIModel(**(given | values))


def test_a_server_that_misbehaves_in_every_way_loses_nothing(tmp_path: Path) -> None:
    """200 questions at concurrency 16; about a third of the requests meet a fault, most kinds many times."""
    lot = random.Random(5)
    cheap = [fault for fault in FAULTS if fault not in ("timeout", "huge")]
    plan = [lot.choice(cheap) if lot.random() < 0.33 else "ok" for _ in range(2000)]
    plan[: 2 * len(FAULTS)] = 2 * FAULTS
    queries = [Query(str(i)) for i in range(200)]
    with serve(say, lambda number, body: plan[number], hang=6.0) as server:
        # A long time-out: an answer that a busy machine gives too late would be one that nobody used.
        asked = model(server.url, attempts=9, timeout=5.0)
        client = ChatClient(asked, concurrency=16, cache_dir=tmp_path)
        replies = client.complete([request(query.text, query) for query in queries])
        bills = client.settle(queries)
        log = server.log
    assert len(replies) == 200
    assert set(log.faults) == {"ok", *FAULTS}
    outcomes = [reply.outcome for reply in replies]
    assert outcomes.count("failed") == 0
    for i, reply in enumerate(replies):
        right = Pick(choice=i % 10, why="as asked") if reply.outcome == "answered" else request().fallback
        assert reply.value == right
    assert outcomes.count("answered") > 150
    usage = client.usage()
    assert usage["requests"] == log.requests
    used = sum(log.faults[kind] for kind in ("ok", "broken", "schema", "huge"))
    assert sum(bill.cost.llm_calls for bill in bills) == sum(reply.calls for reply in replies) == used
    oversize = (usage["tokens"] - log.tokens) / log.faults["huge"]
    assert 512 < oversize < 712, "whole answers are counted as the server counts them, too long ones as full"
    assert sum(bill.cost.text_tokens for bill in bills) == usage["tokens"]
    assert 2 <= log.busiest <= 16
    everything = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in everything
    # The same again costs nothing.
    again = ChatClient(model(server.url), cache_dir=tmp_path)
    assert [one.value for one in again.complete([request(query.text, query) for query in queries])] == [
        one.value for one in replies
    ]
    assert (again.usage()["requests"], again.usage()["tokens"]) == (0, 0)
    assert [bill.cost for bill in again.settle(queries)] == [bill.cost for bill in bills]


def test_while_a_server_asks_to_wait_nobody_sends() -> None:
    waits: list[float] = []
    with serve(say, lambda number, body: "429" if number < 3 else "ok") as server:
        patient = model(server.url, attempts=8)
        patient._patience._sleep = lambda seconds: waits.append(seconds)
        (reply,) = ChatClient(patient).complete([request("7")])
    assert reply.value.choice == 7
    assert [wait for wait in waits if wait >= 0.05]
    assert max(waits) <= 0.05 + 1.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": f"Mon, 01 Jan {10**20} 00:00:00 GMT"}, None),
        ({"retry-after": f"Mon, 01 Jan 2020 00:00:00 +{10**15}"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_a_servers_word_on_waiting_is_read(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_date_to_wait_for_is_read() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    until = format_datetime(now + timedelta(seconds=40), usegmt=True)
    assert retry_after({"retry-after": until}, now) == 40.0


def test_a_wait_that_is_too_long_is_not_waited_for() -> None:
    with serve(say, lambda number, body: "429") as server:
        (reply,) = ChatClient(model(server.url, max_wait=0.01)).complete([request("1")])
        assert server.log.requests == 1
    assert reply.outcome == "failed"
    assert "chat.max_wait" in reply.reason


def test_a_server_that_is_down_is_given_up() -> None:
    with serve(say, lambda number, body: "500") as server:
        client = ChatClient(model(server.url, attempts=1), concurrency=1)
        replies = client.complete([request(str(i)) for i in range(40)])
        assert server.log.requests == GIVE_UP_AFTER
    assert {reply.outcome for reply in replies} == {"failed"}
    assert "in a row" in replies[-1].reason


def test_a_spent_quota_is_not_asked_again() -> None:
    with serve(say, lambda number, body: "quota") as server:
        (reply,) = ChatClient(model(server.url)).complete([request("1")])
        assert server.log.requests == 1
    assert "quota" in reply.reason
    assert KEY not in reply.reason


@pytest.mark.parametrize("fault", ["429", "quota", "402"])
@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_server_that_gives_out_for_good_ends_the_sending(fault: str, concurrency: int) -> None:
    """Each request under way may learn it by itself; those behind them are not sent."""
    picture = Image.new("RGB", (2, 2))
    with serve(say, lambda number, body: fault, seconds=0.02) as server:
        text, vision = (model(server.url, max_wait=0.01) for _ in range(2))
        client = ChatClient(text, vision, concurrency=concurrency)
        replies = client.complete([request(str(i), image=picture if i % 2 else None) for i in range(60)])
        assert 1 <= server.log.requests <= concurrency
        told = client.complete([request("61")])[0]
        assert server.log.requests <= concurrency
    assert {reply.outcome for reply in (*replies, told)} == {"failed"}
    assert all(("chat.max_wait" if fault == "429" else "quota") in reply.reason for reply in (*replies, told))
    assert "the same command goes on" in told.reason


def test_a_key_that_is_not_taken_ends_the_run_without_showing_it() -> None:
    with serve(say, lambda number, body: "401") as server, pytest.raises(ConfigError) as told:
        ChatClient(model(server.url)).complete([request("1")])
    assert "api_key_env" in str(told.value)
    assert KEY not in str(told.value)


def test_a_server_that_knows_no_schemas_is_asked_for_less_and_then_always() -> None:
    def fault(number: int, body: dict[str, Any]) -> str:
        return "400" if body.get("response_format", {}).get("type") == "json_schema" else "ok"

    with serve(say, fault) as server:
        client = ChatClient(model(server.url), concurrency=1)
        replies = client.complete([request(str(i)) for i in range(3)])
        kinds = [body.get("response_format", {}).get("type") for body in server.log.bodies]
    assert [reply.value.choice for reply in replies] == [0, 1, 2]
    assert kinds == ["json_schema", "json_object", "json_object", "json_object"]


def test_a_refusal_after_a_success_is_the_requests_own() -> None:
    with serve(say, lambda number, body: "ok" if number == 0 else "400") as server:
        client = ChatClient(model(server.url), concurrency=1)
        replies = client.complete([request("1"), request("2")])
        assert server.log.requests == 2
    assert [reply.outcome for reply in replies] == ["answered", "failed"]


def test_what_is_sent() -> None:
    picture = Image.new("RGB", (5, 4), "red")
    with serve(lambda body: '{"choice": 1}') as server:
        asked = model(
            server.url, limit_name="max_completion_tokens", options={"temperature": None, "top_k": 3}
        )
        ChatClient(asked).complete([request("look", image=picture), request("read")])
        seen, read = sorted(
            server.log.bodies, key=lambda body: isinstance(body["messages"][1]["content"], str)
        )
        headers = server.log.headers[0]
    assert headers["authorization"] == f"Bearer {KEY}"
    assert (seen["model"], seen["max_completion_tokens"], seen["top_k"]) == ("m", 512, 3)
    assert not {"temperature", "max_tokens"} & set(seen)
    text, image = seen["messages"][1]["content"]
    assert text == {"type": "text", "text": "look"}
    assert image["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert read["messages"][1]["content"] == "read"
    assert read["response_format"]["json_schema"]["schema"]["required"] == ["choice", "why"]


def ask_both(text: str, vision: str, *more: str) -> list[str]:
    """How `chat=openai` fares with a request for each of two servers."""
    chosen = ["chat=openai", "chat.model=m", f"chat.base_url={text}", f"chat.vision_base_url={vision}", *more]
    backend = section(load_config("eval", chosen).chat.backend)
    client: ChatClient = make(backend, {"cache_dir": None, "run": ""})
    replies = client.complete([request("read"), request("look", image=Image.new("RGB", (2, 2)))])
    return [reply.outcome for reply in replies]


@pytest.mark.parametrize(
    ("more", "seen"),
    [
        ((), ""),
        (("chat.vision_api_key_env=VISION_KEY",), OTHER_KEY),
        (("chat.vision_api_key_env=OPENAI_API_KEY",), KEY),
    ],
    ids=["not named", "its own", "the same by name"],
)
def test_a_key_goes_to_its_own_server_alone(
    more: tuple[str, ...], seen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISION_KEY", OTHER_KEY)
    with serve(lambda body: PICK) as first, serve(lambda body: PICK) as second:
        assert ask_both(first.url, second.url, *more) == ["answered"] * 2
        assert first.log.headers[0]["authorization"] == f"Bearer {KEY}"
        (headers,) = second.log.headers
    found = [one for one in (KEY, OTHER_KEY) if one in " ".join(headers.values())]
    assert found == ([seen] if seen else [])


def test_two_models_on_one_server_share_its_key() -> None:
    with serve(lambda body: PICK) as server:
        assert ask_both(server.url, f"{server.url}/") == ["answered"] * 2
        assert [one["authorization"] for one in server.log.headers] == [f"Bearer {KEY}"] * 2


def test_a_vision_server_that_needs_a_key_says_how_to_name_it() -> None:
    with pytest.raises(ConfigError, match=r"chat\.vision_api_key_env"):
        ask_both("http://localhost:9/v1", "null")


def test_all_that_changes_what_is_sent_changes_the_fingerprint() -> None:
    changes: list[dict[str, Any]] = [
        {},
        {"structured": "none"},
        {"structured": "json_object"},
        {"structured": "json_schema"},
        {"limit_name": "max_completion_tokens"},
        {"options": {"seed": 1}},
        {"model": "n"},
    ]
    found = [model("http://h/v1", **change).fingerprint for change in changes]
    assert len(set(found)) == len(changes)
    assert model("http://h/v1", attempts=2, timeout=3.0, max_wait=4.0).fingerprint == found[0]


def test_a_server_that_comes_down_the_ladder_keeps_its_answers(tmp_path: Path) -> None:
    with serve(lambda body: PICK, lambda number, body: "400" if number == 0 else "ok") as server:
        ChatClient(model(server.url), cache_dir=tmp_path).complete([request("1")])
        assert server.log.requests == 2
        ChatClient(model(server.url), cache_dir=tmp_path).complete([request("1")])
        assert server.log.requests == 2
        ChatClient(model(server.url, structured="none"), cache_dir=tmp_path).complete([request("1")])
        assert server.log.requests == 3, "asked in another way, to be rid of a bad answer"


def test_requests_of_one_content_are_sent_once() -> None:
    with serve(say, seconds=0.1) as server:
        client = ChatClient(model(server.url))
        replies = client.complete([request("4") for _ in range(16)])
        assert server.log.requests == 1
    assert [reply.value.choice for reply in replies] == [4] * 16
    assert client.usage()["cache_hits"] == 15


def test_an_interrupt_sends_nothing_more() -> None:
    begun = threading.Event()

    def slow(body: dict[str, Any]) -> str:
        begun.set()
        return say(body)

    with serve(slow, lambda number, body: "500") as server:
        client = ChatClient(model(server.url, attempts=50), concurrency=2)
        client._budget.close("interrupted")
        (reply,) = client.complete([request("1")])
        assert server.log.requests == 0
    assert reply.reason == "interrupted"


def test_values_that_cannot_work_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=r"chat\.base_url is 'ftp://h'"):
        model("ftp://h")
    for url in ("http://[::1", "http://[h]/v1", "http://h:port/v1", "http://h:99999/v1"):
        with pytest.raises(ConfigError, match=r"chat\.base_url is 'http://"):
            model(url)
    with pytest.raises(ConfigError, match="NAME of an environment variable") as told:
        model("http://h/v1", api_key_env=KEY)
    assert KEY not in str(told.value)
    with pytest.raises(ConfigError, match=r"chat\.timeout is 0"):
        model("http://h/v1", timeout=0)
    with pytest.raises(ConfigError, match=r"chat\.model is empty"):
        model("http://h/v1", model=" ")
    for url in ("http://user:pass@h/v1", "http://user:pa@ss@h/v1", "http://h/v1?key=pass"):
        assert model(url).fingerprint == model("http://h/v1").fingerprint
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        OpenAIModel("m")
    assert model("http://h/v1")._key == ""


def test_contents_in_parts_and_refusals_are_read() -> None:
    def body(content: object) -> bytes:
        return json.dumps({"choices": [{"message": {"content": content}}]}).encode()

    parts = [{"type": "text", "text": '{"choice"'}, {"type": "other"}, {"type": "text", "text": ": 1}"}]
    assert read_completion(body(parts), request()).text == '{"choice": 1}'
    assert read_completion(body(None), request()).text == ""
    assert read_completion(body("ab"), request()).answer_tokens == 1, "estimated where nobody counts"
    assert read_completion(b"\xef\xbb\xbf" + body("ab"), request()).text == "ab", "a byte order mark"
    assert read_completion(body("a\ud83d"), request()).text == "a?", "half a character"
    assert read_completion(body("ab").replace(b"b", b"\xff"), request()).text == "a\ufffd"
    deep = b'{"choices": ' + b"[" * 100_000
    for broken in (b"", b"[]", b'{"choices": []}', b'{"choices": [{}]}', body(3), deep, b"\xff", b"NaN"):
        with pytest.raises(ValidationError):
            read_completion(broken, request())


def test_nobody_listens(tmp_path: Path) -> None:
    client = ChatClient(model("http://127.0.0.1:9/v1", attempts=2), max_calls=1, cache_dir=tmp_path)
    (reply,) = client.complete([request("1")])
    assert "connection failed" in reply.reason
    assert client.usage()["requests"] == 0, "what finds no server is not sent"
    assert client._store.totals() == {"sent": 0, "answers": 0, "open": 0}
