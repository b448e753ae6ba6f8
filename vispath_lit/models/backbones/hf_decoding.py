"""Answers of one language model to several prompts, written side by side, each under its own grammar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from vispath_lit.models.backbones.hf_cache import growing_cache, joined_cache
from vispath_lit.models.backbones.hf_grammar import Grammar

ALONE = 256  # tokens of the longest prompt, besides what all share, below which prompts are read side by side
CAUSAL = 1.6  # times as fast is attention without padding (SmolLM2-135M, 2,000 tokens, a core with bfloat16)


@dataclass(eq=False, slots=True)
class Row:
    """One answer that is being written.

    Attributes:
        step: requests of a step begin alike and are best generated together.
        prompt: its token ids.
        temperature: of the sampling; 0 is greedy.
        max_tokens: of the answer.
        written: token ids of the answer so far.
    """

    step: str
    prompt: list[int]
    grammar: Grammar
    temperature: float
    max_tokens: int
    written: list[int] = field(default_factory=list)
    random: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    @property
    def done(self) -> bool:
        return self.grammar.done or len(self.written) >= self.max_tokens

    def begin(self) -> list[int]:
        """Writes what the grammar leaves no choice about, such as the first key; the tokens written.

        Only here, where they are read along with the prompt: later on each would widen the step of all rows.
        """
        forced = self.grammar.forced()[: self.max_tokens]
        for token in forced:
            self._add(token)
        return forced

    def write(self, scores: Tensor) -> list[int]:
        """Writes the next token by the model's scores, one a token id, float32; the tokens written."""
        token = choose(scores, self.grammar.allowed(), self.temperature, self.random)
        self._add(token)
        return [token]

    def _add(self, token: int) -> None:
        self.grammar.write(token)
        self.written.append(token)


class Reader:
    """What a model has read in each row: attention mask, and keys and values.

    Rows read different numbers of tokens at a time; the shorter are padded on the left, so that a row's
    last token is always its own. Padding is never attended to and takes no position.

    Attributes:
        mask: [rows, tokens], 0 where a row has padding.
    """

    def __init__(self, model: Any, cache: DynamicCache | None = None, mask: Tensor | None = None) -> None:
        self._model = model
        self._cache = growing_cache(model.config) if cache is None else cache
        self.mask = torch.zeros(1, 0, dtype=torch.long, device=model.device) if mask is None else mask

    def read(self, tokens: Sequence[Sequence[int]]) -> Tensor:
        """Reads at least one token a row; the scores of what comes next.

        Returns:
            [rows, token ids], float32, on the CPU.
        """
        width = max(map(len, tokens))
        ids = torch.tensor([[0] * (width - len(row)) + list(row) for row in tokens])
        real = torch.tensor([[0] * (width - len(row)) + [1] * len(row) for row in tokens])
        self.mask = torch.cat([self.mask, real.to(self.mask.device)], dim=1)
        positions = (self.mask.cumsum(dim=1) - 1).clamp(min=0)[:, -width:]
        output = self._model(
            input_ids=ids.to(self.mask.device),
            attention_mask=self.mask,
            position_ids=positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        scores: Tensor = output.logits[:, -1].float().cpu()
        return scores

    @classmethod
    def joined(cls, readers: Sequence[Reader]) -> Reader:
        """One reader of the rows of all, each of which has one and nothing afterwards."""
        width = max(reader.mask.shape[1] for reader in readers)
        mask = torch.cat([F.pad(reader.mask, (width - reader.mask.shape[1], 0)) for reader in readers])
        return cls(readers[0]._model, joined_cache([reader._cache for reader in readers]), mask)

    def repeat(self, rows: int) -> None:
        """Makes a number of rows of the only one."""
        self._cache.batch_repeat_interleave(rows)
        self.mask = self.mask.expand(rows, -1)

    def keep(self, rows: Sequence[int]) -> None:
        """Forgets the other rows."""
        at = torch.tensor(rows, device=self.mask.device)
        self._cache.batch_select_indices(at)
        self.mask = self.mask[at]


@torch.inference_mode()
def write(model: Any, rows: Sequence[Row]) -> None:
    """Writes the answers to all rows."""
    begun = [(row, row.prompt + row.begin()) for row in rows]
    begun = [(row, unread) for row, unread in begun if not row.done]
    if not begun:
        return
    going = [row for row, _ in begun]
    reader, scores = _read([unread for _, unread in begun], model)
    while going:
        unread = [row.write(one) for row, one in zip(going, scores, strict=True)]
        left = [i for i, row in enumerate(going) if not row.done]
        if left and len(left) < len(going):
            reader.keep(left)
        going = [going[i] for i in left]
        if going:
            scores = reader.read([unread[i] for i in left])


def _read(prompts: Sequence[list[int]], model: Any) -> tuple[Reader, Tensor]:
    """A reader that has read the prompts, and the scores of what comes next, `[rows, token ids]`."""
    if len(prompts) == 1:
        reader = Reader(model)
        return reader, reader.read(prompts)
    shared = _beginning(prompts)
    if model.device.type == "cpu" and quicker_alone(list(map(len, prompts)), shared):
        readers = [Reader(model) for _ in prompts]
        scores = torch.cat([one.read([prompt]) for one, prompt in zip(readers, prompts, strict=True)])
        return Reader.joined(readers), scores
    reader = Reader(model)
    if shared:
        reader.read([prompts[0][:shared]])
    reader.repeat(len(prompts))
    return reader, reader.read([prompt[shared:] for prompt in prompts])


def quicker_alone(lengths: Sequence[int], shared: int) -> bool:
    """Whether prompts are read faster one by one than side by side, after what all begin with.

    Side by side, all are as long as the longest, and attention has a mask; alone, the beginning is read for
    each.
    """
    rest = max(lengths) - shared
    return rest >= ALONE and sum(lengths) < shared + CAUSAL * len(lengths) * rest


def choose(scores: Tensor, allowed: Tensor, temperature: float, random: torch.Generator) -> int:
    """The best allowed token, or one drawn with the model's probabilities at a temperature.

    Drawn by the Gumbel-max trick: the noise is the request's own, so that no other row has a part in it.

    Args:
        scores: one a token id, float32.
        allowed: bool, one a token id, or more.
    """
    tokens = allowed[: len(scores)].nonzero()[:, 0]
    values = scores[tokens]
    if temperature > 0:
        values = values / temperature - torch.empty(len(values)).exponential_(generator=random).log()
    return int(tokens[values.argmax()])


def _beginning(rows: Sequence[Sequence[int]]) -> int:
    """How many tokens all rows begin with; the last of a row is never among them."""
    shortest = min(map(len, rows)) - 1
    differ = (i for i in range(shortest) if any(row[i] != rows[0][i] for row in rows))
    return next(differ, shortest)


def all_attend(model: Any) -> bool:
    """Whether every layer attends to everything, and positions mean the same in any company.

    Windows and running states would count padding, and some rotary embeddings go by the longest row.
    """
    config = model.config.get_text_config()
    layers = DynamicCache(config=model.config).layers
    windows = "local" in getattr(config, "attention_layers", ())  # GPT-Neo's, which no layer of a cache shows
    rotary = getattr(config, "rope_parameters", None) or {}
    by_length = {rotary.get("rope_type")} & {"dynamic", "longrope"}
    return (
        bool(layers) and all(type(layer) is DynamicLayer for layer in layers) and not (windows or by_length)
    )
