"""A Hugging Face image-text model on this machine as the model of prompted parts that show pictures."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llguidance.hf
import torch
from PIL.Image import Image
from torch import Tensor
from transformers import AutoModelForImageTextToText, LogitsProcessorList, StoppingCriteriaList

from vispath_lit.errors import ChatError, ConfigError, at_least
from vispath_lit.models.backbones.hf_chat import Dtype, check_length, fingerprint, transcript
from vispath_lit.models.backbones.hf_files import ModelFiles, compute_dtype
from vispath_lit.models.backbones.hf_grammar import Grammar, SchemaDone, SchemaRule
from vispath_lit.protocols import Sending
from vispath_lit.types import ChatMessage, ChatRequest, RawAnswer, ReplyT


class HuggingFaceVisionChat:
    """The `ChatModel` of an image-text-to-text model, by `generate` under the JSON schema of the answer.

    It is opened at the first request, so that a run without pictures needs none: its name may then be that
    of a language model. One request is generated at a time, greedily unless the step asks for a temperature;
    sampling is seeded.

    Args:
        model: a folder, or an id of the hub, from where it is downloaded; no code of it is run.
        revision: commit, tag or branch on the hub.
        dtype: of the weights; `auto` is bfloat16 where the machine computes in it.
        max_prompt: tokens of a prompt; a longer one has no answer. None is what the model was made for.

    Raises:
        ConfigError: neither a folder nor an id of the hub.
    """

    def __init__(
        self,
        model: str,
        revision: str | None = None,
        dtype: Dtype = "auto",
        max_prompt: int | None = None,
    ) -> None:
        if max_prompt is not None:
            at_least(1, "chat", max_prompt=max_prompt)
        folder = Path(model).expanduser()
        # Not yet asked whether there is a model in it: a folder of a GGUF file has none that sees.
        self._files = (
            ModelFiles(str(folder), None, True) if folder.is_dir() else ModelFiles.find(model, revision)
        )
        self._dtype = compute_dtype(dtype)
        self._max_prompt = max_prompt
        self._fingerprint = fingerprint(self._files, "", self._dtype, max_prompt)
        self._one_at_a_time = threading.Lock()
        self._opened: _Opened | None = None
        self._blind = ""  # why no model could be opened

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        """What the model writes; an answer cut short by its limit is for the caller to repair.

        Raises:
            ChatError: a model that cannot be opened as one that sees, or a prompt that is too long for it.
        """
        with (
            self._one_at_a_time,
            torch.inference_mode(),
            torch.random.fork_rng(enabled=request.temperature > 0),
        ):
            model = self._open()
            inputs = model.inputs(request.messages, request.images)
            length = int(inputs["input_ids"].shape[1])
            check_length(length, self._max_prompt or model.max_prompt)
            rule = SchemaRule(Grammar(model.words, request.reply, request.most, request.max_tokens), length)
            send()
            written = model.write(inputs, rule, request.temperature, request.max_tokens)
        text = model.processor.tokenizer.decode(written, skip_special_tokens=True)
        return RawAnswer(text, length, len(written))

    def _open(self) -> _Opened:
        if self._opened is None and not self._blind:
            try:
                self._opened = _Opened(self._files, self._dtype)
            except ConfigError as error:
                self._blind = (
                    f"the model sees no pictures; name one that does with chat.vision_model, or "
                    f"leave pictures out with chat.blind=true ({error})"
                )
        if self._opened is None:
            raise ChatError(self._blind)
        return self._opened


class _Opened:
    """Model and processor.

    Attributes:
        words: the tokenizer as llguidance has it.
        max_prompt: tokens that the model was made for.
    """

    def __init__(self, files: ModelFiles, dtype: torch.dtype) -> None:
        self.processor = files.processor(files.config())
        self._model = files.whole(AutoModelForImageTextToText, dtype=dtype, use_safetensors=True)
        self._model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
        text = self._model.config.get_text_config()
        self.max_prompt = int(text.max_position_embeddings)
        self.words = llguidance.hf.from_tokenizer(self.processor.tokenizer, n_vocab=int(text.vocab_size))

    def inputs(self, messages: Sequence[ChatMessage], images: Sequence[Image]) -> Any:
        """Token ids [1, tokens], mask and pixels."""
        pictures = [list(images)] if images else None
        found = self.processor(text=[self._prompt(messages)], images=pictures, return_tensors="pt")
        found.pop("token_type_ids", None)
        return found.to(self._model.device)

    def write(self, inputs: Any, rule: SchemaRule, temperature: float, max_tokens: int) -> Tensor:
        """Token ids of the answer."""
        tokenizer = self.processor.tokenizer
        sampling: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if temperature > 0:
            torch.manual_seed(0)
            sampling = {"do_sample": True, "temperature": temperature}
        found: Tensor = self._model.generate(
            **inputs,
            max_new_tokens=max_tokens,
            pad_token_id=tokenizer.pad_token_id or tokenizer.eos_token_id,
            logits_processor=LogitsProcessorList([rule]),
            stopping_criteria=StoppingCriteriaList([SchemaDone(rule)]),
            **sampling,
        )
        return found[0, inputs["input_ids"].shape[1] :]

    def _prompt(self, messages: Sequence[ChatMessage]) -> str:
        """The conversation as the model's own template has it; line by line where it has none."""
        if self.processor.chat_template is None:
            token = getattr(self.processor, "image_token", "")
            return transcript(
                [(one.role, [p if isinstance(p, str) else token for p in one.parts]) for one in messages]
            )
        turns = [
            {
                "role": one.role,
                "content": [
                    {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
                    for part in one.parts
                ],
            }
            for one in messages
        ]
        text: str = self.processor.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text
