"""The packaged backbone: MiniLM with LoRA reads text tokens and, after them, the picture's cells."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from vispath_lit.encoders.minilm import load_minilm
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.errors import ConfigError
from vispath_lit.models.backbones.lora import LoraAdapter
from vispath_lit.models.backbones.pictures import PictureCells, distinct_pictures
from vispath_lit.models.backbones.precision import products_in, round_products
from vispath_lit.models.backbones.states import batches, joined, readable
from vispath_lit.models.frozen import frozen
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Query

TARGETS = r".*\.attention\.self\.(query|value)"
STEP = 8  # tokens to which a batch is padded


class MiniLMVision(nn.Module):
    """Hidden states of the question's tokens, the statement's tokens and the picture's cells.

    A picture's tokens come after the text and have places of their own behind the longest text, whatever the
    text's length. So a state without a picture, read by an untrained adapter, is MiniLM's own reading of
    "question [SEP] statement".

    Args:
        grid: the picture's feature map is pooled to `grid x grid` cells; the mean of all is one more token.
        folder: a local sentence encoder of the BERT kind; the packaged all-MiniLM-L6-v2 where None.
        rank, alpha, dropout: of the adapter on query and value.
        max_tokens: of question and statement; the question is cut last.
        dtype: `auto` computes in bfloat16 where the processor can. Trained weights and results are float32.
        batch: states a forward pass, of about equal length.

    Raises:
        ConfigError: more tokens than the encoder has places for.
    """

    def __init__(
        self,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None = None,
        grid: int = 2,
        folder: Path | str | None = None,
        rank: int = 8,
        alpha: int = 16,
        dropout: float = 0.05,
        max_tokens: int = 64,
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        batch: int = 16,
    ) -> None:
        super().__init__()
        self.tokenizer, model = load_minilm(None if folder is None else Path(folder))
        places = int(model.config.max_position_embeddings)  # type: ignore[union-attr, arg-type]
        if batch < 1 or not 4 <= max_tokens <= places - grid**2 - 1:
            raise ConfigError(
                f"vlm.batch is {batch} and vlm.max_tokens {max_tokens}; expected at least 1, and from 4 to "
                f"{places - grid**2 - 1}, as the encoder has {places} places"
            )
        self.max_tokens, self.batch, self.dtype = max_tokens, batch, choose_dtype(dtype)
        self.dim = int(model.config.hidden_size)  # type: ignore[union-attr, arg-type]
        self._tokenizing = threading.Lock()  # the tokenizer is no thread's own
        self.cells = PictureCells(image_encoder, cache_dir, grid)
        # The fused attention's backward pass in bfloat16 takes a third of a step on a processor.
        model.set_attn_implementation("eager")  # type: ignore[operator]
        self.adapter = LoraAdapter(model, TARGETS, rank, alpha, dropout)
        round_products(self.adapter.model, self.dtype)
        words = self.adapter.model.get_input_embeddings().weight
        channels = self.cells.channels
        self.project = nn.Sequential(nn.LayerNorm(channels), nn.Linear(channels, self.dim))
        # A picture's tokens begin about as long as words.
        nn.init.normal_(self.project[1].weight, std=float(words.std()) / channels**0.5)  # type: ignore[arg-type]
        nn.init.zeros_(self.project[1].bias)  # type: ignore[arg-type]

    def forward(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Hidden states `[S, L, dim]` float32 of text and picture, and their mask `[S, L]`."""
        texts = self._tokens(queries, statements)
        pictures, which = self._pictures(queries)
        rows = batches([len(text) for text in texts], self.batch)
        parts = [self._read([texts[i] for i in batch], pictures, which[batch]) for batch in rows]
        return joined(parts, rows, pictures, self.dim)

    def _tokens(self, queries: Sequence[Query], statements: Sequence[str]) -> list[list[int]]:
        """Token ids of "[CLS] question [SEP] statement [SEP]", of "[CLS] question [SEP]" before any walk."""
        both = [readable(text) for text in (*(query.text for query in queries), *statements)]
        if not both:
            return []
        with self._tokenizing:
            ids = self.tokenizer(
                both, add_special_tokens=False, truncation=True, max_length=self.max_tokens, padding=False
            )["input_ids"]
        begin, end = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        read = []
        for question, statement in zip(ids[: len(queries)], ids[len(queries) :], strict=True):
            text = [begin, *question[: self.max_tokens - 2], end]
            room = self.max_tokens - len(text) - 1
            read.append([*text, *statement[:room], end] if statement and room > 0 else text)
        return read

    def _pictures(self, queries: Sequence[Query]) -> tuple[Tensor, Tensor]:
        """Projected cells `[D, cells, dim]` of the distinct pictures, and `[S]` which is whose (-1: none)."""
        images, which = distinct_pictures(queries)
        device = next(self.parameters()).device
        if not images:
            # One empty picture nobody looks at: all weights take part in every step, as ddp wants it.
            cells = torch.zeros(1, 0, self.cells.channels)
        else:
            with frozen():
                cells = self.cells(images)
        return self.project(cells.to(device)), which.to(device)

    def _read(self, texts: Sequence[list[int]], pictures: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden states `[n, l + cells, dim]` of a batch, and their mask."""
        device, cells = pictures.device, pictures.shape[1]
        longest = -(-max(map(len, texts)) // STEP) * STEP
        ids = torch.tensor([text + [0] * (longest - len(text)) for text in texts], device=device)
        lengths = torch.tensor([len(text) for text in texts], device=device)
        mask = torch.arange(longest, device=device) < lengths[:, None]
        mask = torch.cat([mask, (which >= 0)[:, None].expand(-1, cells)], dim=1)
        text_places = torch.arange(longest, device=device)
        cell_places = torch.arange(self.max_tokens, self.max_tokens + cells, device=device)
        with products_in(self.dtype, device):
            words = self.adapter.model.get_input_embeddings()(ids)
            states = self.adapter.model(
                inputs_embeds=torch.cat([words, pictures[which.clamp_min(0)]], dim=1),
                attention_mask=mask.long(),
                position_ids=torch.cat([text_places, cell_places])[None],
            ).last_hidden_state
        return states.float(), mask
