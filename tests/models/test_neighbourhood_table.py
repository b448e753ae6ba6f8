"""Each vector of a neighbourhood is encoded once for given weights, and kept where that is worth it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned_worlds import WordEncoder
from neighbourhood_worlds import COUNT, HUB, KINDS, LONE, MakeGraph, crowded, make, move

from vispath_lit.errors import CheckpointError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods import table
from vispath_lit.models.neighbourhoods.compgcn import CompGCNNeighbourhood
from vispath_lit.models.neighbourhoods.encoder import EgoGraphEncoder
from vispath_lit.models.neighbourhoods.table import VectorTable


@pytest.fixture(scope="module")
def graph(make_graph: MakeGraph) -> KnowledgeGraph:
    return crowded(make_graph)


@pytest.fixture(scope="module")
def words() -> WordEncoder:
    return WordEncoder()


@pytest.mark.parametrize("kind", KINDS)
def test_the_table_holds_what_is_encoded_afresh(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(kind, graph, words, tmp_path)
    asked = torch.tensor([LONE, HUB, 3, 3, 0])
    for lazily in (False, True):
        encoder._whole = not lazily
        for _ in range(2):
            rows = encoder.rows(asked)
            assert rows.vectors.shape == (COUNT, 8)
            torch.testing.assert_close(rows.dense().float(), encoder.encode(asked), atol=2e-3, rtol=2e-3)
            move(encoder)
    assert not list(tmp_path.iterdir())  # weights that may still move are worth no file


@pytest.mark.parametrize("kind", KINDS)
def test_loaded_weights_are_encoded_once_into_a_file(
    kind: type[EgoGraphEncoder], graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    trained = make(kind, graph, words, tmp_path)
    move(trained)
    first, second = (make(kind, graph, words, tmp_path) for _ in range(2))
    for encoder in (first, second):
        encoder.load_state_dict(trained.state_dict())
    expected = first.rows(torch.arange(COUNT)).dense()
    (file,) = (tmp_path / "neighbourhoods").glob("*.npy")
    second.encode = None  # type: ignore[method-assign, assignment]
    assert torch.equal(second.rows(torch.arange(COUNT)).dense(), expected)
    file.write_bytes(file.read_bytes()[:200])  # a damaged one is made again
    third = make(kind, graph, words, tmp_path)
    third.load_state_dict(trained.state_dict())
    assert torch.equal(third.rows(torch.arange(COUNT)).dense(), expected)
    move(third)  # other weights have another file, or none while they move
    assert not torch.equal(third.rows(torch.arange(COUNT)).dense(), expected)
    other = make(kind, graph, words, tmp_path, seed=1)
    other.load_state_dict(trained.state_dict())
    other.rows(torch.arange(2))
    assert len(list((tmp_path / "neighbourhoods").glob("*.npy"))) == 2


def test_in_training_rows_grow_old_for_some_steps(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder = make(CompGCNNeighbourhood, graph, words, tmp_path, refresh=2).train()
    asked, seen = torch.tensor([1, 2]), []
    for step in range(5):
        encoder.refresh(step)
        seen.append(encoder.rows(asked).dense().clone())
        assert encoder.training
        move(encoder, step)
    assert torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], seen[3])
    assert not torch.equal(seen[1], seen[2])
    assert not torch.equal(seen[3], seen[4])
    assert not torch.equal(encoder.eval().rows(asked).dense(), seen[4])


def test_rows_of_older_weights_are_taken_up_by_a_resumed_run(
    graph: KnowledgeGraph, words: WordEncoder, tmp_path: Path
) -> None:
    encoder, other = (make(CompGCNNeighbourhood, graph, words, tmp_path, refresh=9).train() for _ in range(2))
    assert encoder.remembered() == {}
    encoder.refresh(0)
    old = encoder.rows(torch.tensor([1, 2])).dense().clone()
    move(encoder)
    state = encoder.remembered()
    assert state["entities"].tolist() == [1, 2]
    other.load_state_dict(encoder.state_dict())
    other.remember(state)
    other.refresh(1)
    assert torch.equal(other.rows(torch.tensor([1, 2])).dense(), old)
    assert torch.equal(other.rows(torch.tensor([5])).dense(), encoder.rows(torch.tensor([5])).dense())
    other.eval().rows(torch.tensor([1]))
    assert other.train().remembered() == {}, "what a validation encoded is not used in training"
    assert not torch.equal(other.rows(torch.tensor([1, 2])).dense(), old)
    damaged = [
        {"entities": torch.tensor([COUNT]), "vectors": torch.zeros(1, 8).half()},
        {"entities": torch.tensor([-1]), "vectors": torch.zeros(1, 8).half()},
        {"entities": torch.tensor([1]), "vectors": torch.full((1, 8), torch.nan).half()},
        {"entities": torch.tensor([1]), "vectors": torch.zeros(1, 7).half()},
        {"entities": torch.tensor([1]), "vectors": torch.zeros(1, 8).bfloat16()},
        {"entities": torch.tensor([1])},
    ]
    for one in damaged:
        with pytest.raises(CheckpointError, match="transfer=true"):
            other.remember(one)


def test_a_table_encodes_each_row_once_and_only_what_is_asked() -> None:
    seen: list[int] = []

    def encode(entities: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, Any]:
        seen.extend(entities.tolist())
        return np.stack([entities, entities], axis=1) % 1000  # float16 holds such exactly

    vectors = VectorTable(encode, 5 * table.CHUNK, 2)
    some = np.array([7, 3, 7, 2000])
    assert vectors.some(some)[some].tolist() == [[7, 7], [3, 3], [7, 7], [0, 0]]
    assert seen == [3, 7, 2000]
    vectors.some(np.array([3, 4]))
    assert seen == [3, 7, 2000, 4]
    vectors.forget("others")
    vectors.some(np.array([3]))
    vectors.forget("others")
    vectors.some(np.array([3]))
    assert seen == [3, 7, 2000, 4, 3]
    assert (vectors.all(None)[:, 0] == np.arange(5 * table.CHUNK) % 1000).all()
    assert len(seen) == 5 + 5 * table.CHUNK
    vectors.all(None)
    vectors.some(some)
    assert len(seen) == 5 + 5 * table.CHUNK
