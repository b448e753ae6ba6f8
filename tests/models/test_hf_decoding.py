"""Answers written side by side are those written alone, and those of a loop without any cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import llguidance.hf
import pytest
import torch
from chat_steps import Pick
from pydantic import BaseModel
from tiny_vlms import TEXT, write_model, write_tokenizer
from transformers import (
    DynamicCache,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    Lfm2Config,
    Lfm2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

from vispath_lit.models.backbones import hf_cache, hf_decoding
from vispath_lit.models.backbones.hf_decoding import Row, all_attend, choose, write
from vispath_lit.models.backbones.hf_grammar import Grammar


class Choice(BaseModel):
    number: int
    score: float


class Choices(BaseModel):
    choices: list[Choice]


# Prompt, shape, temperature, tokens at most
ASKED: list[tuple[str, type[BaseModel], float, int]] = [
    (
        "system: choose. user: what money do people pay with in the country whose flag is shown?",
        Pick,
        0.0,
        60,
    ),
    ("system: choose. user: Paris", Choices, 0.0, 50),
    ("system: choose. user: France capital Paris located in Europe", Choices, 0.7, 90),
    ("system: choose. user: France capital Paris located in Europe", Choices, 0.0, 90),
    ("system: choose. user: which?", Pick, 1.5, 7),
    ("system: choose. user: France capital Paris located in Europe", Choices, 0.7, 90),
    ("system: choose. user: one token", Pick, 0.0, 1),
]


class Tiny:
    """A Llama of two layers with its tokenizer."""

    def __init__(self, folder: Path) -> None:
        _, size = write_tokenizer(folder, [], None)
        config = LlamaConfig(**TEXT, vocab_size=size, bos_token_id=None, eos_token_id=0, pad_token_id=0)
        write_model(folder, LlamaForCausalLM, config)
        self.model: Any = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
        self.tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(folder)
        self.words = llguidance.hf.from_tokenizer(self.tokenizer, n_vocab=size)

    def row(self, text: str, reply: type[BaseModel], temperature: float, max_tokens: int) -> Row:
        prompt = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return Row("pick", prompt, Grammar(self.words, reply), temperature, max_tokens)


@pytest.fixture(params=[True, False], ids=["alone", "side by side"])
def joins(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Prompts that are read one by one and ones that are read side by side; little room behind both."""
    monkeypatch.setattr(hf_decoding, "quicker_alone", lambda lengths, shared: request.param)
    monkeypatch.setattr(hf_cache, "HEADROOM", 2)
    joined, join = [0], hf_cache.joined_cache

    def counted(caches: Sequence[DynamicCache]) -> DynamicCache:
        joined[0] += 1
        return join(caches)

    monkeypatch.setattr(hf_decoding, "joined_cache", counted)
    yield
    assert bool(joined[0]) == request.param


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("llama"))


@torch.inference_mode()
def slowly(model: Any, row: Row) -> list[int]:
    """One row, everything read anew for every token."""
    for token in row.grammar.forced()[: row.max_tokens]:
        row.written.append(token)
        row.grammar.write(token)
    while len(row.written) < row.max_tokens and not row.grammar.done:
        scores = model(input_ids=torch.tensor([row.prompt + row.written])).logits[0, -1]
        token = choose(scores, row.grammar.allowed(), row.temperature, row.random)
        row.written.append(token)
        row.grammar.write(token)
    return row.written


def written(tiny: Tiny, asked: Sequence[tuple[str, type[BaseModel], float, int]]) -> list[list[int]]:
    rows = [tiny.row(*one) for one in asked]
    write(tiny.model, rows)
    return [row.written for row in rows]


@pytest.mark.usefixtures("joins")
def test_company_changes_no_answer(tiny: Tiny) -> None:
    alone = [written(tiny, [one])[0] for one in ASKED]
    assert alone == [slowly(tiny.model, tiny.row(*one)) for one in ASKED]
    assert written(tiny, ASKED) == alone
    assert written(tiny, ASKED[::-1]) == alone[::-1]
    assert written(tiny, ASKED[:2]) == alone[:2]
    assert alone[2] == alone[5], "sampling is the request's own"
    assert alone[2] != alone[3]
    assert all(len(tokens) <= most for tokens, (*_, most) in zip(alone, ASKED, strict=True))
    assert len(alone[6]) == 1


@pytest.mark.usefixtures("joins")
def test_prompts_that_share_nothing_and_prompts_that_are_one(tiny: Tiny) -> None:
    for texts in (["Paris", "which relation should the next step follow?"], ["Paris", "Paris"], ["a", "a b"]):
        asked = [(text, Choices, 0.0, 40) for text in texts]
        assert written(tiny, asked) == [written(tiny, [one])[0] for one in asked]


def test_a_row_stops_where_its_json_ends(tiny: Tiny) -> None:
    rows = [tiny.row("Paris", Choices, 1.0, 2_000), tiny.row("Paris", Pick, 0.0, 3)]
    write(tiny.model, rows)
    assert rows[0].grammar.done
    assert tiny.tokenizer.decode(rows[0].written).endswith("]}")
    assert len(rows[1].written) == 3


def test_draws_follow_the_models_probabilities() -> None:
    scores = torch.tensor([2.0, 9.0, 1.0, 0.0])
    allowed = torch.tensor([True, False, True, True])
    random = torch.Generator().manual_seed(3)
    drawn = torch.tensor([choose(scores, allowed, 0.5, random) for _ in range(4000)])
    expected = torch.softmax(torch.tensor([2.0, -torch.inf, 1.0, 0.0]) / 0.5, dim=0)
    assert torch.allclose(torch.bincount(drawn, minlength=4) / 4000, expected, atol=0.02)
    assert choose(scores, allowed, 0.0, random) == 0
    assert choose(torch.zeros(4), torch.tensor([False, True, True, True, True]), 0.0, random) == 1


def test_windows_of_attention_are_told(tiny: Tiny) -> None:
    assert all_attend(tiny.model)
    config = MistralConfig(**TEXT, vocab_size=300, sliding_window=16)
    assert not all_attend(MistralForCausalLM(config))
    local = GPTNeoConfig(
        vocab_size=300, hidden_size=16, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]]
    )
    assert not all_attend(GPTNeoForCausalLM(local))


def test_positions_that_go_by_the_longest_row_are_told() -> None:
    stretched = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10_000.0}
    assert not all_attend(LlamaForCausalLM(LlamaConfig(**TEXT, vocab_size=300, rope_parameters=stretched)))


def test_a_model_with_running_states_writes_alone(tiny: Tiny) -> None:
    kinds = {"layer_types": ["conv", "full_attention"]}
    config = Lfm2Config(**TEXT | kinds, vocab_size=len(tiny.tokenizer), pad_token_id=0)
    torch.manual_seed(0)
    model: Any = Lfm2ForCausalLM(config)
    model.eval()
    assert not all_attend(model)
    row, again = (tiny.row("France capital Paris", Pick, 0.0, 12) for _ in range(2))
    write(model, [row])
    assert row.written == slowly(model, again)


def test_prompts_are_read_alone_where_that_is_less_work() -> None:
    assert hf_decoding.quicker_alone([2000, 1800], 100)
    assert not hf_decoding.quicker_alone([200, 180], 10), "little to read"
    assert not hf_decoding.quicker_alone([2000] * 12, 1000), "a long beginning twelve times"
    assert hf_decoding.quicker_alone([1900, *[1010] * 11], 1000), "much padding"
