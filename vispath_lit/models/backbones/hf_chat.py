"""A Hugging Face model on this machine as language model of prompted parts; its JSON cannot but be valid."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import llguidance.hf
import torch
import xxhash
from PIL.Image import Image
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoTokenizer,
    LogitsProcessorList,
    StoppingCriteriaList,
)

from vispath_lit.errors import ChatError, ConfigError
from vispath_lit.models.backbones.hf_files import ModelFiles, compute_dtype
from vispath_lit.models.backbones.hf_grammar import SchemaDone, SchemaRule
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatMessage, ChatRequest, RawAnswer, ReplyT

SAMPLED = 1 << 20  # bytes at both ends of a weight file that its fingerprint reads


class HuggingFaceChat:
    """The `ChatModel` of a local folder or a hub id, by `generate` under the JSON schema of the answer.

    One request is generated at a time, greedily unless the step asks for a temperature; sampling is seeded.

    Args:
        model: a folder, or an id of the hub, from where it is downloaded; no code of it is run.
        vision: an image-text-to-text model, else a language model.
        gguf_file: the file in the folder where the weights are in that format (language models).
        revision: commit, tag or branch on the hub.
        dtype: of the weights; `auto` is bfloat16 where the machine computes in it.
        max_prompt: tokens of a prompt; a longer one has no answer. None is what the model was made for.

    Raises:
        ConfigError: a model that cannot be opened.
    """

    def __init__(
        self,
        model: str,
        vision: bool = False,
        gguf_file: str | None = None,
        revision: str | None = None,
        dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto",
        max_prompt: int | None = None,
    ) -> None:
        if vision and gguf_file:
            raise ConfigError("chat.gguf_file is for language models; an image-text model needs safetensors")
        files = _gguf_folder(model) if gguf_file else ModelFiles.find(model, revision)
        kind = compute_dtype(dtype)
        self._processor: Any = None
        if vision:
            config = files.config()
            self._processor = files.processor(config)
            self._tokenizer = self._processor.tokenizer
            self._model = files.whole(AutoModelForImageTextToText, dtype=kind, use_safetensors=True)
        else:
            more = {"gguf_file": gguf_file} if gguf_file else {}
            safe = {} if gguf_file else {"use_safetensors": True}
            self._tokenizer = files.whole(AutoTokenizer, **more)
            self._model = files.whole(AutoModelForCausalLM, dtype=kind, **more, **safe)
        self._model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        text = self._model.config.get_text_config()
        self._max_prompt = max_prompt or int(text.max_position_embeddings)
        self._words = llguidance.hf.from_tokenizer(self._tokenizer, n_vocab=int(text.vocab_size))
        self._fingerprint = f"hf {_content(files)} {gguf_file or ''} {kind} {self._max_prompt}"
        self._one_at_a_time = threading.Lock()

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        """What the model writes; an answer cut short by its limit is for the caller to repair.

        Raises:
            ChatError: a picture for a model that sees none, or a prompt that is too long for it.
        """
        if request.images and self._processor is None:
            raise ChatError("the model sees no pictures; name one that does with chat.vision_model")
        with (
            self._one_at_a_time,
            torch.inference_mode(),
            torch.random.fork_rng(enabled=request.temperature > 0),
        ):
            inputs = self._inputs(request.messages, request.images)
            length = int(inputs["input_ids"].shape[1])
            if length > self._max_prompt:
                raise ChatError(f"the prompt has {length} tokens, and the model takes {self._max_prompt}")
            send()
            written = self._generate(inputs, request)[0, length:]
        text = self._tokenizer.decode(written, skip_special_tokens=True)
        return RawAnswer(text, length, len(written))

    def _generate(self, inputs: Any, request: ChatRequest[ReplyT]) -> Tensor:
        rule = SchemaRule(self._words, request.reply, int(inputs["input_ids"].shape[1]))
        sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if request.temperature > 0:
            torch.manual_seed(0)
            sampling = {"do_sample": True, "temperature": request.temperature}
        found: Tensor = self._model.generate(
            **inputs,
            max_new_tokens=request.max_tokens,
            pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id,
            logits_processor=LogitsProcessorList([rule]),
            stopping_criteria=StoppingCriteriaList([SchemaDone(rule)]),
            **sampling,
        )
        return found

    def _inputs(self, messages: Sequence[ChatMessage], images: Sequence[Image]) -> Any:
        """Token ids and, of a model that sees, pixels."""
        if self._processor is None:
            found = self._tokenizer(self._prompt(messages), return_tensors="pt", add_special_tokens=False)
        else:
            pictures = [list(images)] if images else None
            found = self._processor(text=[self._prompt(messages)], images=pictures, return_tensors="pt")
        found.pop("token_type_ids", None)
        return found.to(self._model.device)

    def _prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The conversation as the model's own template has it; line by line where it has none."""
        turns = [{"role": one.role, "content": self._content(one)} for one in messages]
        chat = self._processor or self._tokenizer
        if chat.chat_template is None:
            token = getattr(self._processor, "image_token", "")
            lines = [(one.role, [p if isinstance(p, str) else token for p in one.parts]) for one in messages]
            return "\n".join(f"{role}: {' '.join(parts)}" for role, parts in lines) + "\nassistant: "
        text: str = chat.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text

    def _content(self, message: ChatMessage) -> Any:
        if self._processor is None:
            return "\n".join(part for part in message.parts if isinstance(part, str))
        return [
            {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
            for part in message.parts
        ]


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
