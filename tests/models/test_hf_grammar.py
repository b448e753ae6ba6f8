"""What a model may write under the grammar of a reply: valid, and with an end."""

from __future__ import annotations

from typing import Literal

import llguidance
import pytest
from pydantic import BaseModel, Field

from vispath_lit.chat.parsing import json_schema
from vispath_lit.models.backbones.hf_grammar import MAX_ITEMS, Bounds, Grammar
from vispath_lit.systems.replies import Said

BYTES = llguidance.LLTokenizer("byte")


class Score(BaseModel):
    value: float


class Count(BaseModel):
    value: int


class Many(BaseModel):
    value: list[int]


class Nested(BaseModel):
    value: list[Score] | None


class Narrow(BaseModel):
    value: float = Field(gt=0, le=0.005)


class Bounded(BaseModel):
    few: list[int] = Field(min_length=30, max_length=40)
    small: float = Field(ge=0, lt=1, multiple_of=0.125)
    large: int = Field(ge=100_000)
    one: Literal[1, 20_000]


def takes(reply: type[BaseModel], text: str, most: int | None = None, max_tokens: int = 512) -> bool:
    """Whether a model may write all of a text and then stop."""
    grammar = Grammar(BYTES, reply, most, max_tokens)
    for byte in text.encode():
        if grammar.done or not grammar.allowed()[byte]:
            return False
        grammar.write(byte)
    return grammar.done


@pytest.mark.parametrize("text", ["0", "1", "0.5", "0.33", "-0.25", "9999", "17.1"])
def test_numbers_of_two_decimals_may_be_written(text: str) -> None:
    assert takes(Score, f'{{"value":{text}}}')


@pytest.mark.parametrize("text", ["0.333", "0.33333333333333", "10000", "123456789", "1e5", "-10000.5"])
def test_longer_numbers_may_not(text: str) -> None:
    assert not takes(Score, f'{{"value":{text}}}')


def test_integers_have_a_few_digits() -> None:
    assert all(takes(Count, f'{{"value":{number}}}') for number in (0, -7, 42, 9999, -9999))
    assert not any(takes(Count, f'{{"value":{number}}}') for number in (10_000, -10_000, 10**30))


def test_lists_end() -> None:
    assert takes(Many, f'{{"value":[{",".join("1" * MAX_ITEMS)}]}}')
    assert not takes(Many, f'{{"value":[{",".join("1" * (MAX_ITEMS + 1))}]}}')
    assert takes(Many, '{"value":[]}')


def test_a_list_has_no_more_items_than_a_step_reads() -> None:
    assert takes(Many, '{"value":[1,2,3]}', most=3)
    assert not takes(Many, '{"value":[1,2,3,4]}', most=3)
    many = ",".join("1" * (MAX_ITEMS + 5))
    assert takes(Many, f'{{"value":[{many}]}}', most=MAX_ITEMS + 5)


def test_a_text_closes_before_the_tokens_are_used_up() -> None:
    assert takes(Said, f'{{"answer":"{"x" * 20}"}}', max_tokens=10)
    assert not takes(Said, f'{{"answer":"{"x" * 21}"}}', max_tokens=10)
    assert takes(Said, '{"answer":""}', max_tokens=10)


def test_what_lies_within_a_list_is_bounded_too() -> None:
    assert takes(Nested, '{"value":[{"value":0.25}]}')
    assert takes(Nested, '{"value":null}')
    assert not takes(Nested, '{"value":[{"value":0.255}]}')


def test_bounds_of_a_reply_itself_stay() -> None:
    few = ",".join(["5"] * 35)
    for small, large, one, valid in [
        ("0.125", "100001", "20000", True),
        ("0.250", "100001", "1", True),
        ("0.13", "100001", "1", False),
        ("1", "100001", "1", False),
        ("0.125", "9999", "1", False),
    ]:
        text = f'{{"few":[{few}],"small":{small},"large":{large},"one":{one}}}'
        assert takes(Bounded, text) == valid, text
    schema = json_schema(Bounded)
    found = Bounds(MAX_ITEMS, 512).put(schema)["properties"]
    assert found["few"] | {"items": None} == schema["properties"]["few"] | {"items": None}
    assert found["small"] == schema["properties"]["small"]
    assert found["one"] == schema["properties"]["one"]


def test_a_range_without_a_number_of_two_decimals_keeps_all_of_its_own() -> None:
    assert takes(Narrow, '{"value":0.001}')
    assert not takes(Narrow, '{"value":0.01}')


def test_the_schema_that_servers_get_has_no_such_bounds() -> None:
    schema = json_schema(Many)
    Bounds(MAX_ITEMS, 512).put(schema)
    assert schema["properties"]["value"] == {"items": {"type": "integer"}, "title": "Value", "type": "array"}


def test_keys_are_forced_and_values_are_not() -> None:
    grammar = Grammar(BYTES, Score)
    forced = bytes(grammar.forced())
    assert b'{"value":'.startswith(forced)
    for byte in b'{"value":0':
        grammar.write(byte)
    assert not grammar.forced()
    for byte in b".25}":
        grammar.write(byte)
    assert grammar.done
    assert not grammar.forced()
