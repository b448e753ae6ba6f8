"""The JSON schema of an answer as a rule for `generate`: what is written cannot but be valid."""

from __future__ import annotations

from typing import Any

import llguidance
import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria

from vispath_lit.chat.parsing import json_schema
from vispath_lit.errors import ChatError


class SchemaRule(LogitsProcessor):
    """Lets through only tokens with which the answer can still become valid.

    Args:
        words: the model's tokenizer as llguidance has it.
        reply: the shape of the answer.
        prompt: tokens of the prompt, which no rule is for.

    Raises:
        ChatError: a shape of which no grammar can be made.
    """

    def __init__(self, words: Any, reply: type[BaseModel], prompt: int) -> None:
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            json_schema(reply), overrides={"whitespace_flexible": False}
        )
        self._matcher = llguidance.LLMatcher(words, grammar)
        if self._matcher.is_error():
            raise ChatError(f"no grammar can be made of the step's answer: {self._matcher.get_error()}")
        self._read = prompt  # tokens that the matcher knows, or need not know

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.follow(input_ids)
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        allowed = torch.from_numpy(np.unpackbits(bits, bitorder="little").astype(bool)).to(scores.device)
        masked = scores.masked_fill(~allowed[: scores.shape[1]], float("-inf"))
        return masked

    def follow(self, input_ids: Tensor) -> bool:
        """Reads the tokens that are new; whether the answer is complete."""
        for token in input_ids[0, self._read :].tolist():
            if not self._matcher.is_stopped():
                self._matcher.consume_token(token)
        self._read = int(input_ids.shape[1])
        return bool(self._matcher.is_stopped())


class SchemaDone(StoppingCriteria):
    """Ends where the JSON ends."""

    def __init__(self, rule: SchemaRule) -> None:
        self._rule = rule

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        return torch.full((len(input_ids),), self._rule.follow(input_ids), device=input_ids.device)
