"""A backbone for words: MiniLM whose upper layers have LoRA, over states of the lower ones that are kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vispath_lit.encoders.minilm import MiniLM, load_minilm
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.lora import LoraAdapter
from vispath_lit.models.backbones.precision import products_in, round_products
from vispath_lit.models.backbones.states import batches, joined
from vispath_lit.models.frozen import frozen
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Query

TARGETS = r".*\.(query|key|value|dense)"


class MiniLMUpper(nn.Module):
    """Hidden states of the question's and the statement's tokens; pictures are left to the intent's own look.

    The lower layers are frozen and read each text once; their states are kept by content. So a step computes
    the upper layers alone, which begin as trained ones.

    Attributes:
        lower: the frozen lower layers, as a text encoder.

    Args:
        cache_dir: the lower layers' states are kept below it; None keeps them in memory.
        folder: a local sentence encoder of the BERT kind; the packaged all-MiniLM-L6-v2 where None.
        layers: with an adapter, from the top.
        rank, alpha, dropout: of the adapter on all linear layers of these.
        dtype: `auto` computes in bfloat16 where the processor can. Trained weights and results are float32.
        batch: texts a forward pass of the upper layers, of about equal length.

    Raises:
        ConfigError: the encoder has no more layers than that, or a batch would be empty.
    """

    def __init__(
        self,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None = None,
        folder: Path | str | None = None,
        layers: int = 2,
        rank: int = 16,
        alpha: int = 32,
        dropout: float = 0.0,
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        batch: int = 16,
    ) -> None:
        super().__init__()
        _, model = load_minilm(None if folder is None else Path(folder))
        whole: Any = model.encoder
        if not 0 < layers < len(whole.layer):
            raise ConfigError(
                f"vlm.layers is {layers}; expected 1 to {len(whole.layer) - 1}, as the encoder has "
                f"{len(whole.layer)}"
            )
        if batch < 1:
            raise ConfigError(f"vlm.batch is {batch}; expected at least 1")
        self.batch = batch
        self.lower = MiniLM(cache_dir, folder, dtype, layers=len(whole.layer) - layers)
        self.dim, self.dtype = self.lower.dim, choose_dtype(dtype)
        model.set_attn_implementation("eager")  # type: ignore[operator]
        self.adapter = LoraAdapter(Upper(whole.layer[-layers:]), TARGETS, rank, alpha, dropout)
        round_products(self.adapter.model, self.dtype)

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Hidden states `[S, L, dim]` float32 of the texts, and their mask `[S, L]`."""
        texts = [
            f"{query.text} [SEP] {statement}" if statement else query.text
            for query, statement in zip(queries, statements, strict=True)
        ]
        device = next(self.adapter.model.parameters()).device
        with frozen():
            states, mask = (x.to(device) for x in self.lower.tokens(texts))
        lengths = mask.sum(dim=1)
        rows = batches(lengths.tolist(), self.batch)
        parts = []
        for batch in rows:
            some = states[batch, : int(lengths[batch].max())], mask[batch, : int(lengths[batch].max())]
            with products_in(self.dtype, device):
                parts.append((self.adapter.model(*some).float(), some[1]))
        return joined(parts, rows, states, self.dim)


class Upper(nn.Module):
    """The upper layers of an encoder of the BERT kind."""

    def __init__(self, layers: nn.ModuleList) -> None:
        super().__init__()
        self.layer = layers

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """`[S, L, d]` to the same; `mask` is `[S, L]` bool."""
        hidden = torch.zeros_like(mask, dtype=states.dtype).masked_fill(~mask, -1e9)[:, None, None]
        for layer in self.layer:
            states = layer(states, hidden)
        return states
