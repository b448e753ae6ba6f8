from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.composer_files import load_composers
from vispath_lit.models.texts.distill import DistillSettings
from vispath_lit.models.texts.edge_table import graph_pairs
from vispath_lit.models.texts.exact import Exact
from vispath_lit.models.texts.samples import WalkSampler, random_starts, sample_pairs
from vispath_lit.models.texts.two_stage import TwoStage
from vispath_lit.protocols import TextProvider, TextStage
from vispath_lit.types import Paths

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
QUICK = DistillSettings(edges=40, walks=40, hops=3, edge_steps=200, chain_steps=200)


class Deaf:
    """A text encoder that must not be asked: what is composed needs no new text."""

    def __init__(self, real: MiniLM, allowed: Sequence[str]) -> None:
        self.real, self.allowed = real, set(allowed)
        self.dim, self.fingerprint = real.dim, real.fingerprint

    def encode(self, texts: Sequence[str]) -> Tensor:
        assert set(texts) <= self.allowed, f"asked for {set(texts) - self.allowed}"
        return self.real.encode(texts)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise AssertionError("no tokens needed")


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    return MiniLM(None, dtype="float32")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for the module: the toy graph has one fingerprint, so that it is distilled once."""
    return tmp_path_factory.mktemp("cache")


def two_hop_paths(graph: KnowledgeGraph) -> Paths:
    france, germany = graph.entity_index("fr"), graph.entity_index("de")
    paths = Paths.starts(torch.tensor([france, germany]), torch.arange(2))
    for _ in range(2):
        frontier = expand(graph, paths)
        paths = paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    return paths


def test_exact_is_the_encoder(toy_graph: KnowledgeGraph, encoder: MiniLM) -> None:
    stage = Exact(toy_graph, encoder)
    relation, tail = torch.tensor([0, 9, 0, 0]), torch.tensor([4, 1, 4, 5])
    rows = stage.edge_vectors(relation, tail)
    assert len(rows.vectors) == 3
    assert torch.equal(rows.dense(), encoder.encode(edge_texts(toy_graph, relation, tail)))
    paths = two_hop_paths(toy_graph)
    chains = stage.chain_vectors(paths)
    assert torch.equal(chains.dense(), encoder.encode(verbalize(toy_graph, paths)))


def test_composed_reads_labels_only(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    Composed(toy_graph, encoder, cache, settings=QUICK)  # distils
    labels = toy_graph.labels(range(toy_graph.num_entities)) + toy_graph.relation_labels()
    stage = Composed(toy_graph, Deaf(encoder, labels), cache, settings=QUICK)
    paths = two_hop_paths(toy_graph)
    assert stage.edge_vectors(paths.relations[:, 1], paths.ends).dense().shape == (len(paths), encoder.dim)
    assert stage.chain_vectors(paths).dense().shape == (len(paths), encoder.dim)


def test_composed_is_close_to_exact(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    composed, exact = Composed(toy_graph, encoder, cache, settings=QUICK), Exact(toy_graph, encoder)
    paths = two_hop_paths(toy_graph)
    pair = (paths.relations[:, 1], paths.ends)
    edges = (composed.edge_vectors(*pair).dense() * exact.edge_vectors(*pair).dense()).sum(1)
    chains = (composed.chain_vectors(paths).dense() * exact.chain_vectors(paths).dense()).sum(1)
    assert float(edges.mean()) > 0.93
    assert float(chains.mean()) > 0.85
    for vectors in (composed.edge_vectors(*pair).vectors, composed.chain_vectors(paths).vectors):
        torch.testing.assert_close(vectors.norm(dim=1), torch.ones(len(vectors)), atol=1e-3, rtol=0)
        assert not vectors.requires_grad


def test_equal_pairs_share_a_row(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    stage = Composed(toy_graph, encoder, cache, settings=QUICK)
    relation, tail = torch.tensor([0, 3, 0]), torch.tensor([4, 8, 4])
    rows = stage.edge_vectors(relation, tail)
    assert len(rows.vectors) == 2
    assert rows.index[0] == rows.index[2] != rows.index[1]


def test_vectors_do_not_depend_on_company(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    paths = two_hop_paths(toy_graph)
    for megabytes in (0, 64):  # composed on the fly, and from tables
        stage = Composed(toy_graph, encoder, cache, table_mb=megabytes, settings=QUICK)
        together = stage.chain_vectors(paths).dense()
        edges = stage.edge_vectors(paths.relations[:, 1], paths.ends).dense()
        for i in (0, len(paths) - 1):
            one = paths.select(torch.tensor([i]))
            assert torch.equal(stage.chain_vectors(one).dense()[0], together[i])
            assert torch.equal(stage.edge_vectors(one.relations[:, 1], one.ends).dense()[0], edges[i])


def test_tables_hold_what_would_be_composed(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    quick = Composed(toy_graph, encoder, cache, settings=QUICK)
    slow = Composed(toy_graph, encoder, cache, table_mb=0, settings=QUICK)
    paths = two_hop_paths(toy_graph)
    pair = (paths.relations[:, 1], paths.ends)
    torch.testing.assert_close(
        quick.edge_vectors(*pair).dense(), slow.edge_vectors(*pair).dense(), atol=1e-3, rtol=0
    )
    torch.testing.assert_close(
        quick.chain_vectors(paths).dense(), slow.chain_vectors(paths).dense(), atol=1e-3, rtol=0
    )


def test_edges_that_the_graph_lacks_are_composed(
    toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path
) -> None:
    stage = Composed(toy_graph, encoder, cache, settings=QUICK)
    lone = toy_graph.entity_index("lone")
    rows = stage.edge_vectors(torch.tensor([0, 0]), torch.tensor([lone, 4]))
    exact = Exact(toy_graph, encoder).edge_vectors(torch.tensor([0, 0]), torch.tensor([lone, 4]))
    assert float((rows.dense() * exact.dense()).sum(1).min()) > 0.8


def test_chains_of_length_zero_and_none_at_all(
    toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path
) -> None:
    stage = Composed(toy_graph, encoder, cache, settings=QUICK)
    starts = Paths.starts(torch.tensor([0, 3]), torch.arange(2))
    assert stage.chain_vectors(starts).dense().shape == (2, encoder.dim)
    none = two_hop_paths(toy_graph).select(torch.zeros(0, dtype=torch.long))
    assert stage.chain_vectors(none).dense().shape == (0, encoder.dim)
    assert stage.edge_vectors(none.relations[:, 0], none.ends).dense().shape == (0, encoder.dim)


def test_distillation_is_repeatable(toy_graph: KnowledgeGraph, encoder: MiniLM, tmp_path: Path) -> None:
    small = DistillSettings(edges=20, walks=10, hops=2, edge_steps=3, chain_steps=3)
    files: list[Path] = []
    for name in ("one", "two"):
        Composed(toy_graph, encoder, tmp_path / name, settings=small)
        files += (tmp_path / name / "composers").glob("*.safetensors")
    assert files[0].name == files[1].name
    assert files[0].read_bytes() == files[1].read_bytes()
    other = DistillSettings(seed=1, edges=20, walks=10, hops=2, edge_steps=3, chain_steps=3)
    Composed(toy_graph, encoder, tmp_path / "one", settings=other)
    assert len(list((tmp_path / "one" / "composers").glob("*.safetensors"))) == 2


def test_composers_serve_another_graph(
    toy_graph: KnowledgeGraph,
    encoder: MiniLM,
    cache: Path,
    make_graph: MakeGraph,
    caplog: pytest.LogCaptureFixture,
) -> None:
    Composed(toy_graph, encoder, cache, settings=QUICK)
    (file,) = (cache / "composers").glob("*.safetensors")
    other = make_graph(4, 2, [(0, 0, 1), (1, 1, 2), (2, 0, 3)])
    with caplog.at_level(logging.INFO):
        stage = Composed(other, encoder, cache, composer=str(file))
    assert "distilling" not in caplog.text
    rows = stage.edge_vectors(torch.tensor([0]), torch.tensor([1]))
    exact = Exact(other, encoder).edge_vectors(torch.tensor([0]), torch.tensor([1]))
    assert float((rows.dense() * exact.dense()).sum()) > 0.8


def test_a_damaged_edge_table_is_made_again(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    pair = (torch.tensor([0, 3]), torch.tensor([4, 8]))
    before = Composed(toy_graph, encoder, cache, settings=QUICK).edge_vectors(*pair).dense()
    (file,) = (f for f in (cache / "composed").glob("*.npy") if toy_graph.fingerprint in f.name)
    file.write_bytes(file.read_bytes()[:-10])
    after = Composed(toy_graph, encoder, cache, settings=QUICK).edge_vectors(*pair).dense()
    assert torch.equal(before, after)


@pytest.mark.parametrize(
    "about", ["[" * 100_000, '{"version": 1, "encoder": "x", "dim": Infinity}', "[]", "{}"]
)
def test_a_hostile_composer_file_is_named(about: str, encoder: MiniLM, tmp_path: Path) -> None:
    file = tmp_path / "hostile.safetensors"
    save_file({"weight": torch.zeros(1)}, file, {"composers": about})
    with pytest.raises(CheckpointError, match=r"hostile\.safetensors: not a composer file"):
        load_composers(file, encoder)


def test_composer_files_that_cannot_serve(
    toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match="not a composer file"):
        load_composers(tmp_path / "none.safetensors", encoder)
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(CheckpointError, match="not a composer file"):
        load_composers(tmp_path / "text.safetensors", encoder)
    Composed(toy_graph, encoder, cache, settings=QUICK)  # no other test need have made one
    good, *_ = (cache / "composers").glob("*.safetensors")
    with pytest.raises(CheckpointError, match="text encoder"):
        load_composers(good, MiniLM(None, dtype="bfloat16"))


def test_two_stages(toy_graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    provider: TextProvider = TwoStage(toy_graph, encoder, cache, keep=3, settings=QUICK)
    first, last = provider.stages
    assert (first.keep, last.keep) == (3, None)
    assert (first.texts, last.texts) == (900, None)
    assert isinstance(last, Exact)
    single: TextStage = Exact(toy_graph, encoder)
    assert single.keep is None
    with pytest.raises(ConfigError, match="keep is 0"):
        TwoStage(toy_graph, encoder, cache, keep=0)
    with pytest.raises(ConfigError, match="texts is 0"):
        TwoStage(toy_graph, encoder, cache, texts=0)


def test_walks_follow_edges(toy_graph: KnowledgeGraph) -> None:
    starts = random_starts(toy_graph, 200, np.random.default_rng(0))
    assert toy_graph.entity_index("lone") not in starts
    walks = WalkSampler(toy_graph, 0).walks(starts, 3)
    pairs = set(graph_pairs(toy_graph).tolist())
    signed = 2 * toy_graph.num_relations
    for hop in range(3):
        frontier = expand(toy_graph, Paths.starts(walks.entities[:, hop], walks.state))
        columns = (frontier.edge_path, frontier.relation, frontier.tail)
        steps = set(zip(*(column.tolist() for column in columns), strict=True))
        for i in range(len(walks)):
            step = (i, int(walks.relations[i, hop]), int(walks.entities[i, hop + 1]))
            assert step in steps
            assert step[2] * signed + step[1] in pairs
    again = WalkSampler(toy_graph, 0).walks(starts, 3)
    assert torch.equal(walks.entities, again.entities)


def test_a_walk_draws_the_relation_first(make_graph: MakeGraph) -> None:
    """A hub with 200 edges of one relation and one of another: both are drawn about equally often."""
    graph = make_graph(202, 2, [(0, 0, i) for i in range(1, 201)] + [(0, 1, 201)])
    relation, _ = WalkSampler(graph, 0).step(np.zeros(1000, dtype=np.int64))
    assert 400 < int((relation == 1).sum()) < 600


def test_pairs_are_distinct_edges(toy_graph: KnowledgeGraph) -> None:
    relation, tail = sample_pairs(toy_graph, 500, 0)
    keys = tail * 2 * toy_graph.num_relations + relation
    assert len(np.unique(keys)) == len(keys)
    assert set(keys.tolist()) <= set(graph_pairs(toy_graph).tolist())
    assert len(sample_pairs(toy_graph, 7, 0)[0]) <= 7


def test_settings_that_cannot_work() -> None:
    with pytest.raises(ConfigError, match="walks is 0"):
        DistillSettings(walks=0)
    with pytest.raises(ConfigError, match=r"held_out is 1\.5"):
        DistillSettings(held_out=1.5)
