"""The JSON schema of an answer as a rule for what a model writes: it cannot but be valid, and it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import llguidance
import numpy as np
import torch
from pydantic import BaseModel
from torch import Tensor
from transformers import LogitsProcessor, StoppingCriteria

from vispath_lit.chat.parsing import json_schema
from vispath_lit.errors import ChatError

# Small models count digits and list items until their tokens are used up. What a reply bounds itself stays.
MAX_ITEMS = 20  # of a list
MAX_NUMBER = 9_999  # either side of zero
STEP = 0.01  # of numbers that are no integers: two decimals
LETTERS = 2  # of a text, for each token that the answer may have: it closes before it is cut off
VERSION = 3  # of these rules, in fingerprints: other rules give other answers


class Grammar:
    """What may be written next of one answer.

    Args:
        words: the model's tokenizer as llguidance has it.
        reply: the shape of the answer.
        most: items of each list that has no bound of its own; `MAX_ITEMS` where None.
        max_tokens: of the answer; bounds its texts.

    Raises:
        ChatError: a shape of which no grammar can be made.
    """

    def __init__(
        self, words: Any, reply: type[BaseModel], most: int | None = None, max_tokens: int = 512
    ) -> None:
        bounds = Bounds(MAX_ITEMS if most is None else most, LETTERS * max_tokens)
        grammar = llguidance.LLMatcher.grammar_from_json_schema(
            bounds.put(json_schema(reply)), overrides={"whitespace_flexible": False}
        )
        self._matcher = llguidance.LLMatcher(words, grammar)
        if self._matcher.is_error():
            raise ChatError(f"no grammar can be made of the step's answer: {self._matcher.get_error()}")

    @property
    def done(self) -> bool:
        """Whether the answer is complete."""
        return bool(self._matcher.is_stopped())

    def allowed(self) -> Tensor:
        """Bool, one a token id: those with which the answer can still become valid."""
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        return torch.from_numpy(np.unpackbits(bits, bitorder="little").astype(bool))

    def write(self, token: int) -> None:
        """Takes a token as written; what follows a complete answer is nothing to it."""
        if not self.done:
            self._matcher.consume_token(token)

    def forced(self) -> list[int]:
        """Tokens that must come next, whatever the model prefers, such as the key of a JSON object."""
        return [] if self.done else list(self._matcher.compute_ff_tokens())


class SchemaRule(LogitsProcessor):
    """A grammar for `generate`, of a single row.

    Args:
        grammar: of the answer.
        prompt: tokens of the prompt, which no rule is for.
    """

    def __init__(self, grammar: Grammar, prompt: int) -> None:
        self._grammar = grammar
        self._read = prompt  # tokens that the grammar knows, or need not know

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.follow(input_ids)
        allowed = self._grammar.allowed().to(scores.device)
        return scores.masked_fill(~allowed[: scores.shape[1]], float("-inf"))

    def follow(self, input_ids: Tensor) -> bool:
        """Reads the tokens that are new; whether the answer is complete."""
        for token in input_ids[0, self._read :].tolist():
            self._grammar.write(token)
        self._read = int(input_ids.shape[1])
        return self._grammar.done


class SchemaDone(StoppingCriteria):
    """Ends where the JSON ends."""

    def __init__(self, rule: SchemaRule) -> None:
        self._rule = rule

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        return torch.full((len(input_ids),), self._rule.follow(input_ids), device=input_ids.device)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a JSON schema that sets no bounds itself is held to.

    Attributes:
        items: of a list.
        letters: of a text.
    """

    items: int
    letters: int

    def put(self, schema: Any) -> Any:
        """The schema with bounds on lists, texts and numbers that have none; the rest as it was."""
        if isinstance(schema, list):
            return [self.put(one) for one in schema]
        if not isinstance(schema, dict):
            return schema
        found = {key: self.put(value) for key, value in schema.items()}
        if "enum" in found or "const" in found:
            return found
        kind = found.get("type")
        if kind == "array":
            found.setdefault("maxItems", max(self.items, found.get("minItems", 0)))
        if kind == "string":
            found.setdefault("maxLength", max(self.letters, found.get("minLength", 0)))
        if kind in ("number", "integer"):
            _bound_number(found)
        return found


def _bound_number(schema: dict[str, Any]) -> None:
    least = schema.get("minimum", schema.get("exclusiveMinimum"))
    most = schema.get("maximum", schema.get("exclusiveMaximum"))
    if least is None:
        least = schema["minimum"] = min(-MAX_NUMBER, (most or 0) - MAX_NUMBER)
    if most is None:
        most = schema["maximum"] = max(MAX_NUMBER, least + MAX_NUMBER)
    if schema["type"] == "number" and most - least >= 2 * STEP:  # a narrower range may hold none of them
        schema.setdefault("multipleOf", STEP)
