from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModel, AutoTokenizer

from vispath_lit.encoders.batching import token_batches
from vispath_lit.encoders.minilm import MiniLM, packaged_folder
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.errors import ConfigError

TEXTS = [
    "capital Berlin",
    "",
    "What money do people pay with in the country whose flag is shown?",
    "Reykjavík ‖ Ísland",
    "a" * 5000,
    "word " * 600,
    "東京 \u200d\u0000 \U0001f1eb\U0001f1f7",
    "lone \ud800 surrogate",
    "capital Berlin",
]


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM(None, dtype="float32")


@pytest.fixture(scope="module")
def fast() -> MiniLM:
    return MiniLM(None, dtype="bfloat16")


def by_hand(text: str) -> torch.Tensor:
    """One text through transformers, pooled in plain steps."""
    folder = packaged_folder()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder)
    inputs = tokenizer([text], return_tensors="pt", truncation=True, max_length=256)
    with torch.no_grad():
        hidden = model(**inputs).last_hidden_state[0]
    mean = hidden.sum(0) / hidden.shape[0]
    result: torch.Tensor = mean / mean.norm()
    return result


def test_equals_transformers_with_mean_pooling(encoder: MiniLM) -> None:
    vectors = encoder.encode(TEXTS)
    for i in (0, 1, 2, 3, 5):
        torch.testing.assert_close(vectors[i], by_hand(TEXTS[i]), atol=2e-6, rtol=0)


def test_unit_rows_for_any_text(encoder: MiniLM) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dim)
    assert vectors.dtype == torch.float32
    torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(TEXTS)))
    assert torch.equal(vectors[0], vectors[-1])
    assert torch.equal(vectors[7], encoder.encode(["lone ? surrogate"])[0])
    assert encoder.encode([]).shape == (0, encoder.dim)


def test_bfloat16_is_close(encoder: MiniLM, fast: MiniLM) -> None:
    cosine = (encoder.encode(TEXTS) * fast.encode(TEXTS)).sum(1)
    assert cosine.min() > 0.999


def test_first_and_later_calls_agree(tmp_path: Path) -> None:
    for dtype in ("float32", "bfloat16"):
        first = MiniLM(tmp_path, dtype=dtype)
        fresh = first.encode(TEXTS)
        again = first.encode(list(reversed(TEXTS))).flip(0)
        first.flush()
        reopened = MiniLM(tmp_path, dtype=dtype)
        reopened.model = torch.nn.Identity()  # whatever is embedded again fails
        assert torch.equal(fresh, again)
        assert torch.equal(fresh, reopened.encode(TEXTS))


def test_precisions_do_not_share_a_cache(encoder: MiniLM, fast: MiniLM) -> None:
    assert encoder.fingerprint != fast.fingerprint
    assert encoder.fingerprint == MiniLM(None, dtype="float32").fingerprint


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_company_does_not_change_a_vector(dtype: Literal["float32", "bfloat16"]) -> None:
    texts = [f"{'long ' * (i % 11)}text number {i} of many" for i in range(70)]
    together = MiniLM(None, dtype=dtype).encode(texts)
    alone = MiniLM(None, dtype=dtype)
    assert torch.equal(together, torch.cat([alone.encode([text]) for text in texts]))


def test_tokens_pool_to_the_sentence_vector(encoder: MiniLM) -> None:
    texts = [TEXTS[0], TEXTS[2], "", TEXTS[0]]
    hidden, mask = encoder.tokens(texts)
    assert hidden.shape == (*mask.shape, encoder.dim)
    assert mask.sum(1).tolist() == [4, 16, 2, 4]
    assert bool((hidden[~mask] == 0).all())
    pooled = torch.nn.functional.normalize(hidden.sum(1) / mask.sum(1, keepdim=True), dim=1)
    torch.testing.assert_close(pooled, encoder.encode(texts), atol=1e-4, rtol=0)  # tokens are kept in float16
    again, _ = encoder.tokens(texts[:1])
    assert torch.equal(again[0], hidden[0, :4])


def test_tokens_of_nothing(encoder: MiniLM) -> None:
    hidden, mask = encoder.tokens([])
    assert hidden.shape == (0, 0, encoder.dim)
    assert mask.shape == (0, 0)


def test_tokens_are_read_from_disk(tmp_path: Path) -> None:
    first = MiniLM(tmp_path)
    hidden, _ = first.tokens(TEXTS[:3])
    first.flush()
    reopened = MiniLM(tmp_path)
    reopened.model = torch.nn.Identity()
    assert torch.equal(hidden, reopened.tokens(TEXTS[:3])[0])


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"config\.json"):
        MiniLM(None, folder=tmp_path)
    with pytest.raises(ConfigError, match="float64"):
        MiniLM(None, dtype="float64")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="batch_tokens"):
        MiniLM(None, batch_tokens=8)


def test_auto_precision() -> None:
    assert choose_dtype("auto") in (torch.float32, torch.bfloat16)
    assert choose_dtype("float32") == torch.float32


@settings(deadline=None)
@given(st.lists(st.integers(2, 256), max_size=60), st.sampled_from([256, 1024, 4096]))
def test_batches_hold_each_text_once(lengths: list[int], budget: int) -> None:
    batches = token_batches(np.array(lengths, dtype=np.int64), budget)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        widest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or widest * len(batch) <= budget
