"""Real models with a few thousand weights as chat back ends: weak, but always in the shape asked for."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from chat_steps import Pick, request
from PIL import Image
from tiny_vlms import FAMILIES, TEXT, write_model, write_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.parsing import parse
from vispath_lit.errors import ChatError, ConfigError
from vispath_lit.models.backbones import hf_decoding
from vispath_lit.models.backbones.hf_chat import HuggingFaceChat
from vispath_lit.models.backbones.hf_vision_chat import HuggingFaceVisionChat
from vispath_lit.types import RawAnswer


class Free:
    """Counts nothing."""

    def __call__(self) -> None: ...
    def undo(self) -> None: ...


def tiny_text(folder: Path) -> Path:
    """A Llama of two layers; its template takes plain strings."""
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    end = "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    _, size = write_tokenizer(folder, ["<|im_start|>", "<|im_end|>"], template + end)
    config = LlamaConfig(**TEXT, vocab_size=size, bos_token_id=None, eos_token_id=0, pad_token_id=0)
    return write_model(folder, LlamaForCausalLM, config)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> HuggingFaceChat:
    return HuggingFaceChat(str(tiny_text(tmp_path_factory.mktemp("text"))), dtype="float32")


def test_an_untrained_model_answers_in_the_shape_that_was_asked_for(text: HuggingFaceChat) -> None:
    for words in ("pick one", "another", "a third"):
        answer = text.ask(request(words), Free())
        found = parse(answer.text, Pick)
        assert 0 <= found.choice <= 9
        assert answer.text.startswith('{"choice"')
        assert answer.prompt_tokens > 0 < answer.answer_tokens <= 512
        assert text.ask(request(words), Free()) == answer, "greedy"


def test_a_finished_answer_is_strict_json(text: HuggingFaceChat) -> None:
    answer = text.ask(request("pick"), Free())
    if answer.answer_tokens < 512:
        assert set(json.loads(answer.text)) == {"choice", "why"}


def test_sampling_is_seeded_and_leaves_the_programs_own_numbers(text: HuggingFaceChat) -> None:
    warm = replace(request("pick"), temperature=1.0, max_tokens=24)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert text.ask(warm, Free()) == text.ask(warm, Free())
    assert torch.equal(torch.rand(3), expected)


def test_requests_under_way_together_are_generated_together(
    text: HuggingFaceChat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    batches = []
    write = hf_decoding.write

    def noted(model: object, rows: Sequence[hf_decoding.Row]) -> None:
        batches.append(len(rows))
        write(model, rows)

    monkeypatch.setattr(hf_decoding, "write", noted)
    chat = HuggingFaceChat(str(tiny_text(tmp_path)), dtype="float32", batch=4)
    asked = [replace(request("pick " * (i + 1)), max_tokens=20 + 5 * i) for i in range(6)]
    asked[2] = replace(asked[2], temperature=0.8)
    together = threading.Barrier(len(asked) + 1)

    def ask(i: int) -> RawAnswer:
        together.wait(60)
        return chat.ask(asked[i], Free())

    def fail() -> None:
        together.wait(60)
        with pytest.raises(ChatError, match="tokens"):
            chat.ask(request("long " * 20_000), Free())

    with ThreadPoolExecutor(len(asked) + 1) as pool:
        failed = pool.submit(fail)
        found = list(pool.map(ask, range(len(asked))))
        failed.result()
    assert sum(batches) == len(asked)
    assert max(batches) <= 4
    assert found == [text.ask(one, Free()) for one in asked]
    assert chat.fingerprint + " alone" == text.fingerprint, "whose answers are the same to the last bit"


@pytest.mark.parametrize("family", ["qwen2_5_vl", "smolvlm", "llava_onevision"])
def test_a_model_that_sees_answers_about_a_picture(family: str, tmp_path: Path) -> None:
    chat = HuggingFaceVisionChat(str(FAMILIES[family](tmp_path)), dtype="float32")
    red, blue = (Image.new("RGB", (56, 56), color) for color in ("red", "blue"))
    client = ChatClient(chat, concurrency=2)
    shown = [request("look", image=red), request("look", image=blue), request("look")]
    asked = [replace(one, max_tokens=48) for one in shown]
    replies = client.complete(asked)
    assert [reply.outcome for reply in replies] == ["answered"] * 3
    assert 3 <= client.usage()["requests"] <= 6, "a text that the limit cuts may need a second try"
    lengths = [chat.ask(one, Free()).prompt_tokens for one in asked]
    assert lengths[0] == lengths[1] > lengths[2]


def test_what_cannot_be_asked_is_said(text: HuggingFaceChat, tmp_path: Path) -> None:
    (blind,) = ChatClient(text).complete([request("look", image=Image.new("RGB", (4, 4)))])
    assert "sees no pictures" in blind.reason
    (long,) = ChatClient(text).complete([request("long " * 20_000)])
    assert "tokens" in long.reason
    with pytest.raises(ConfigError, match=r"config\.json"):
        HuggingFaceChat(str(tmp_path))
    with pytest.raises(ConfigError, match=r"chat\.batch is 0"):
        HuggingFaceChat(str(tmp_path), batch=0)
    with pytest.raises(ConfigError, match="no folder"):
        HuggingFaceChat(str(tmp_path / "none"), gguf_file="x.gguf")


@pytest.mark.parametrize("kind", ["a language model", "no model"])
def test_a_run_without_pictures_needs_no_model_that_sees(
    kind: str, text: HuggingFaceChat, tmp_path: Path
) -> None:
    folder = tiny_text(tmp_path) if kind == "a language model" else tmp_path
    client = ChatClient(text, HuggingFaceVisionChat(str(folder), dtype="float32"), concurrency=1)
    assert client.fingerprint.startswith(text.fingerprint)
    shown = [replace(request("look", image=Image.new("RGB", (4, 4))), max_tokens=20) for _ in range(2)]
    replies = client.complete([replace(request("pick"), max_tokens=64), *shown])
    assert replies[0].outcome == "answered"
    assert all("sees no pictures" in reply.reason for reply in replies[1:])
    assert client.usage()["requests"] >= 1
    with pytest.raises(ConfigError, match="no folder"):
        HuggingFaceVisionChat(str(tmp_path / "none"))


def test_other_weights_are_another_fingerprint(tmp_path: Path, text: HuggingFaceChat) -> None:
    folder = tiny_text(tmp_path)
    first = HuggingFaceChat(str(folder), dtype="float32")
    assert first.fingerprint == text.fingerprint, "what counts is content, not place"
    data = bytearray((folder / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "model.safetensors").write_bytes(data)
    assert HuggingFaceChat(str(folder), dtype="float32").fingerprint != first.fingerprint
