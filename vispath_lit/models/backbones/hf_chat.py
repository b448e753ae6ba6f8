"""A Hugging Face model on this machine as language model of prompted parts; its JSON cannot but be valid."""

from __future__ import annotations

import contextlib
import inspect
import io
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import llguidance.hf
import torch
import xxhash
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

from vispath_lit.errors import ChatError, ConfigError, at_least
from vispath_lit.models.backbones import hf_decoding
from vispath_lit.models.backbones.hf_batching import Batches
from vispath_lit.models.backbones.hf_files import ModelFiles, compute_dtype
from vispath_lit.models.backbones.hf_grammar import VERSION, Grammar
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatMessage, ChatRequest, RawAnswer, ReplyT

SAMPLED = 1 << 20  # bytes at both ends of a weight file that its fingerprint reads
NEEDED = ("attention_mask", "position_ids", "cache", "logits_to_keep")  # that a model's forward must take
Dtype = Literal["auto", "float32", "bfloat16", "float16"]


class HuggingFaceChat:
    """The `ChatModel` of a local folder or a hub id, under the JSON schema of the answer; it is blind.

    Requests under way at the same time are generated together, greedily unless the step asks for a
    temperature; sampling is seeded alike for each. What else is in a batch may change the last bits of
    rounding and so, rarely, which token is the best; with a batch of 1 answers are strictly reproducible, and
    are kept apart from the others.

    Args:
        model: a folder, or an id of the hub, from where it is downloaded; no code of it is run.
        gguf_file: the file in the folder where the weights are in that format.
        revision: commit, tag or branch on the hub.
        dtype: of the weights; `auto` is bfloat16 where the machine computes in it.
        max_prompt: tokens of a prompt; a longer one has no answer. None is what the model was made for.
        batch: requests that are generated together, at most; those of a model that would count the padding,
            see `all_attend`, are always generated alone.

    Raises:
        ConfigError: a model that cannot be opened or does not fit.
    """

    def __init__(
        self,
        model: str,
        gguf_file: str | None = None,
        revision: str | None = None,
        dtype: Dtype = "auto",
        max_prompt: int | None = None,
        batch: int = 1,
    ) -> None:
        at_least(1, "chat", batch=batch, **({} if max_prompt is None else {"max_prompt": max_prompt}))
        files = _gguf_folder(model) if gguf_file else ModelFiles.find(model, revision)
        kind = compute_dtype(dtype)
        if gguf_file:
            with contextlib.redirect_stderr(io.StringIO()):  # where a bar is drawn that no setting turns off
                self._tokenizer = files.whole(AutoTokenizer, gguf_file=gguf_file)
                dense = GgufConfig(dequantize=True)  # else kernels of the hub may be fetched and run
                self._model = files.whole(
                    AutoModelForCausalLM, gguf_file=gguf_file, dtype=kind, quantization_config=dense
                )
        else:
            self._tokenizer = files.whole(AutoTokenizer)
            self._model = files.whole(AutoModelForCausalLM, dtype=kind, use_safetensors=True)
        if missing := set(NEEDED) - set(inspect.signature(self._model.forward).parameters):
            raise ConfigError(
                f"chat.model {model}: {type(self._model).__name__} takes no {', '.join(sorted(missing))}; "
                "name a decoder such as a Llama or Qwen"
            )
        self._model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        text = self._model.config.get_text_config()
        self._max_prompt = max_prompt or int(text.max_position_embeddings)
        self._words = llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=int(text.vocab_size))
        self._tokenizing = threading.Lock()  # tokenizers are not made for several threads
        size = batch if hf_decoding.all_attend(self._model) else 1
        self._batches = Batches(size, partial(hf_decoding.write, self._model))
        alone = " alone" if size == 1 else ""
        self._fingerprint = fingerprint(files, gguf_file or "", kind, self._max_prompt) + alone

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        """What the model writes; an answer cut short by its limit is for the caller to repair.

        Raises:
            ChatError: a picture, or a prompt that is too long for the model.
        """
        if request.images:
            raise ChatError(
                "the model sees no pictures; name one that does with chat.vision_model, or leave pictures "
                "out with chat.blind=true"
            )
        with self._tokenizing:
            prompt = self._tokenizer(self._prompt(request.messages), add_special_tokens=False)["input_ids"]
        check_length(len(prompt), self._max_prompt)
        grammar = Grammar(self._words, request.reply, request.most, request.max_tokens)
        row = hf_decoding.Row(request.step, prompt, grammar, request.temperature, request.max_tokens)
        self._batches.write(row, send)
        with self._tokenizing:
            text = self._tokenizer.decode(row.written, skip_special_tokens=True)
        return RawAnswer(text, len(prompt), len(row.written))

    def _prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The conversation as the model's own template has it; line by line where it has none."""
        texts = [(one.role, [part for part in one.parts if isinstance(part, str)]) for one in messages]
        if self._tokenizer.chat_template is None:
            return transcript(texts)
        turns = [{"role": role, "content": "\n".join(parts)} for role, parts in texts]
        text: str = self._tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text


def transcript(turns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """A conversation for a model without a template."""
    return "\n".join(f"{role}: {' '.join(parts)}" for role, parts in turns) + "\nassistant: "


def check_length(found: int, most: int) -> None:
    """Raises ChatError where a prompt has too many tokens."""
    if found > most:
        raise ChatError(f"the prompt has {found} tokens, and the model takes {most}")


def fingerprint(files: ModelFiles, gguf_file: str, dtype: torch.dtype, max_prompt: int | None) -> str:
    """The model's files and all that its answers depend on besides the request."""
    return f"hf {_content(files)} {gguf_file} {dtype} {max_prompt} grammar {VERSION}"


def _gguf_folder(model: str) -> ModelFiles:
    """A folder that holds nothing but a GGUF file."""
    folder = Path(model).expanduser()
    if not folder.is_dir():
        raise ConfigError(f"chat.model {model!r} is no folder; chat.gguf_file names a file inside one")
    return ModelFiles(str(folder), None, True)


def _content(files: ModelFiles) -> str:
    """A hash of a folder's files: names, sizes, and both ends; a hub's model is known by its revision."""
    if not files.local:
        return f"{files.name}@{files.revision}"
    content = xxhash.xxh3_128()
    for file in sorted(path for path in Path(files.name).iterdir() if path.is_file()):
        size = file.stat().st_size
        content.update(f"{file.name}\0{size}\0".encode())
        with file.open("rb") as data:
            content.update(data.read(SAMPLED))
            data.seek(max(size - SAMPLED, 0))
            content.update(data.read(SAMPLED))
    return content.hexdigest()
