from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.encoders.cache import content_keys
from vispath_lit.kg import name_codes, name_folder
from vispath_lit.kg.build import build
from vispath_lit.kg.name_codes import CodedNames, shortlist, train, write
from vispath_lit.kg.name_folder import read_manifest
from vispath_lit.kg.name_table import GONE, NameTexts, map_table, name_table, positions
from vispath_lit.kg.name_vectors import NameVectors
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph

DIM = 32


class Hashed:
    """A fixed random direction for each pair of neighbouring characters, and their sum for a text."""

    dim = DIM
    fingerprint = "hashed"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Tensor:
        self.encoded += texts
        rows = [
            sum((_direction(f"^{t.lower()}$"[i : i + 2]) for i in range(len(t) + 1)), np.zeros(DIM))
            for t in texts
        ]
        return torch.nn.functional.normalize(
            torch.tensor(np.array(rows).reshape(-1, DIM), dtype=torch.float32)
        )

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def _direction(pair: str) -> np.ndarray:
    return np.random.default_rng(list(pair.encode())).normal(size=DIM)


def graph_of(folder: Path, names: Sequence[tuple[str, Sequence[str]]]) -> KnowledgeGraph:
    """A graph of entities e0, e1, ... with these labels and aliases."""
    folder.mkdir(parents=True)
    lines = ["id\tlabel\taliases\ttype\tdescription"]
    lines += [f"e{i}\t{label}\t{'|'.join(aliases)}\t\t" for i, (label, aliases) in enumerate(names)]
    (folder / "entities.tsv").write_text("\n".join(lines) + "\n", encoding="utf8")
    (folder / "relations.tsv").write_text("id\tlabel\nr\tr\n", encoding="utf8")
    (folder / "triples.tsv").write_text("subject\trelation\tobject\ne0\tr\te0\n", encoding="utf8")
    build(folder, folder / "store")
    return KnowledgeGraph.open(folder / "store")


def syllables(count: int, seed: int = 0) -> list[tuple[str, list[str]]]:
    rng = np.random.default_rng(seed)
    parts = [
        "ba",
        "co",
        "du",
        "fel",
        "gri",
        "ha",
        "jin",
        "kra",
        "lom",
        "mi",
        "nor",
        "pé",
        "qua",
        "日",
        "本",
        "राम",
    ]
    made = ["".join(rng.choice(parts, size=rng.integers(3, 7))) for _ in range(2 * count)]
    return [(made[i], [made[count + i]] if i % 3 == 0 else []) for i in range(count)]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes from 200 names on."""
    monkeypatch.setattr(name_folder, "FLAT_BELOW", 200)
    monkeypatch.setattr(name_folder, "CHUNK", 50)


@settings(max_examples=100)
@given(st.lists(st.sampled_from("abcdefgh"), max_size=12), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_positions_equal_a_dictionary(asked: list[str], known: list[str]) -> None:
    asked = list(dict.fromkeys(asked))
    expected = [known.index(text) if text in known else -1 for text in asked]
    keys = [content_keys(text.encode() for text in texts) for texts in (asked, known)]
    assert positions(*keys).tolist() == expected


def test_the_table_numbers_names_and_keeps_their_bearers(tmp_path: Path) -> None:
    names = [("Rhine", ["Rhein", "Paris"]), ("Paris", []), ("Paris", ["Rhine", "Lutetia"])]
    graph = graph_of(tmp_path / "g", names)
    table = name_table(graph, aliases=True)
    texts = NameTexts(graph)
    written = texts.many(table.place)
    assert written == ["Rhine", "Paris", "Rhein", "Lutetia"] == [texts[int(place)] for place in table.place]
    assert [table.owners_of(i) for i in range(4)] == [[0, 2], [0, 1, 2], [0], [2]]
    assert [name_table(graph, aliases=False).owners_of(i) for i in range(2)] == [[0], [1, 2]]
    known = content_keys(text.encode() for text in ("Gone", "Lutetia"))
    grown = name_table(graph, True, known)
    assert grown.place[0] == GONE
    assert texts.many(grown.place[1:]) == ["Lutetia", "Rhine", "Paris", "Rhein"]
    assert [grown.owners_of(i) for i in range(5)] == [[], [2], [0, 2], [0, 1, 2], [0]]


def test_codes_find_what_a_plain_product_finds(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    centres = rng.normal(size=(40, DIM))
    vectors = centres[rng.integers(0, 40, 3000)] + 0.4 * rng.normal(size=(3000, DIM))
    vectors[:, 3] = 0  # a dimension that is always nought
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    queries = vectors[::30] + 0.02 * rng.normal(size=(100, DIM)).astype(np.float32)
    chunks = ((np.arange(i, i + 500), vectors[i : i + 500]) for i in range(0, 3000, 500))
    write(tmp_path, train(vectors), 3000, chunks)
    alive = np.ones(3000, dtype=bool)
    alive[:30] = False
    found = CodedNames(tmp_path, DIM, 3000, alive)
    scores, numbers = found.search(queries, 10)
    exact = np.argsort(-(queries @ vectors[30:].T), axis=1, kind="stable")[:, :10] + 30
    shared = [len(set(a) & set(b)) for a, b in zip(numbers.tolist(), exact.tolist(), strict=True)]
    assert np.mean(shared) >= 9.5
    assert numbers.min() >= 30
    assert np.abs(scores - np.einsum("qd,qkd->qk", queries, vectors[numbers])).max() < 0.02
    assert (np.diff(scores, axis=1) <= 0).all()


def test_threads_and_batches_change_nothing_and_ties_go_by_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(250, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[100:150] = vectors[7]
    write(tmp_path, train(vectors), 250, [(np.arange(250), vectors)])
    found = CodedNames(tmp_path, DIM, 250, None)
    expected = found.search(vectors, 10)
    assert expected[1][7].tolist() == expected[1][120].tolist() == [7, *range(100, 109)]
    assert (
        expected[1][:, 0] == np.where((np.arange(250) >= 100) & (np.arange(250) < 150), 7, range(250))
    ).all()
    monkeypatch.setattr(name_codes, "BATCH", 100)
    monkeypatch.setattr(name_codes, "PIECE", 15)
    before = faiss.omp_get_max_threads()
    for threads in (1, 3):
        faiss.omp_set_num_threads(threads)
        scores, numbers = found.search(vectors, 10)
        assert np.array_equal(scores, expected[0])
        assert np.array_equal(numbers, expected[1])
    faiss.omp_set_num_threads(before)
    assert [array.shape for array in found.search(vectors[:0], 10)] == [(0, 10), (0, 10)]


def test_fewer_living_names_than_asked_for(tmp_path: Path) -> None:
    vectors = np.linalg.qr(np.random.default_rng(3).normal(size=(DIM, DIM)))[0].astype(np.float32)
    write(tmp_path, train(vectors), DIM, [(np.arange(DIM), vectors)])
    alive = np.arange(DIM) < 3
    scores, numbers = CodedNames(tmp_path, DIM, DIM, alive).search(vectors[:2], 5)
    assert [sorted(row) for row in numbers.tolist()] == [[-1, -1, 0, 1, 2]] * 2
    assert numbers[:, 0].tolist() == [0, 1]
    assert (scores[:, 3:] == -np.inf).all()


def test_shortlists() -> None:
    assert [shortlist(n, 10) for n in (5, 1000, 1_000_000, 9_000_000)] == [5, 280, 2000, 6000]


@pytest.mark.usefixtures("small")
def test_a_large_graph_is_searched_by_codes(tmp_path: Path) -> None:
    names = syllables(300)
    graph = graph_of(tmp_path / "g", names)
    encoder = Hashed()
    index = NameIndex(graph, encoder, tmp_path / "cache", aliases=True)
    asked = [label for label, _ in names[::7]] + [alias for _, aliases in names for alias in aliases]
    for text, matches in zip(asked, index.search(asked, k=3), strict=True):
        assert matches[0].name == text
        assert matches[0].score == pytest.approx(1, abs=0.02)
        assert text in (graph.label(matches[0].entity), *graph.aliases(matches[0].entity))
        assert len({match.entity for match in matches}) == 3
    again = Hashed()
    kept = NameIndex(graph, again, tmp_path / "cache", aliases=True)
    assert kept.search(asked, k=3) == index.search(asked, k=3)
    assert again.encoded == asked


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("size", "more"), [(60, 30), (300, 40)])
def test_a_grown_graph_embeds_only_new_names(tmp_path: Path, size: int, more: int) -> None:
    """Below and above the size from which on names lie in lists."""
    names = syllables(size + more)
    early = graph_of(tmp_path / "early", names[:size])
    encoder, cache = Hashed(), tmp_path / "cache"
    NameIndex(early, encoder, cache, aliases=True).search(["x"])
    # The late graph lacks the first three entities, and one of the others has a new alias.
    rest = [
        (label, [*aliases, "entirely new"] if i == 5 else aliases) for i, (label, aliases) in enumerate(names)
    ]
    late = graph_of(tmp_path / "late", rest[3:])
    grown = Hashed()
    index = NameIndex(late, grown, cache, aliases=True)
    before = {text for label, aliases in names[:size] for text in (label, *aliases)}
    after = list(dict.fromkeys(text for label, aliases in rest[3:] for text in (label, *aliases)))
    found = index.search(after, k=2)
    new = [text for text in after if text not in before]
    assert set(grown.encoded[: len(new)]) == set(new)
    assert grown.encoded[len(new) :] == after
    assert [matches[0].name for matches in found] == after
    held = {match.name for matches in index.search([names[0][0], names[1][0]], k=50) for match in matches}
    assert held <= set(after)
    fresh = NameIndex(late, Hashed(), None, aliases=True).search(after, k=1)
    assert [m[0].entity for m in fresh] == [m[0].entity for m in found]


@pytest.mark.usefixtures("small")
def test_a_moved_cache_is_whole_and_stdout_stays_clean(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    graph = graph_of(tmp_path / "g", syllables(300))
    expected = NameIndex(graph, Hashed(), tmp_path / "cache").search(["banor"], k=5)
    assert capfd.readouterr().out == ""
    (tmp_path / "cache").rename(tmp_path / "moved")
    again = Hashed()
    assert NameIndex(graph, again, tmp_path / "moved").search(["banor"], k=5) == expected
    assert again.encoded == ["banor"]
    assert capfd.readouterr().out == ""


@pytest.mark.usefixtures("small")
def test_another_graph_and_a_doubled_one_start_anew(tmp_path: Path) -> None:
    names = syllables(700)
    cache = tmp_path / "cache"
    for name, part in (
        ("first", names[:220]),
        ("other", names[300:560]),
        ("double", names[300:700] + names[:200]),
    ):
        graph = graph_of(tmp_path / name, part)
        index = NameIndex(graph, encoder := Hashed(), cache)
        index.search([part[0][0]])
        assert len(set(encoder.encoded)) == len({label for label, _ in part})
        (manifest,) = [read_manifest(p) for p in cache.glob(f"names/*/{graph.fingerprint}")]
        assert manifest is not None
        assert manifest.learned_from == len({label for label, _ in part})


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("size", [40, 300])
@pytest.mark.parametrize("harm", ["cut", "manifest", "missing", "swapped"])
def test_a_damaged_folder_is_made_again(tmp_path: Path, size: int, harm: str) -> None:
    graph = graph_of(tmp_path / "g", syllables(size))
    cache = tmp_path / "cache"
    expected = NameIndex(graph, Hashed(), cache).search(["banor"], k=5)
    (folder,) = [path for path in cache.glob("names/*/*") if path.is_dir()]
    file = folder / ("vectors.npy" if size == 40 else "codes.npy")
    if harm == "cut":
        file.write_bytes(file.read_bytes()[:-7])
    elif harm == "manifest":
        (folder / "manifest.json").write_text('{"version": [')
    elif harm == "missing":
        (folder / "keys.npy").unlink()
    else:
        owners = np.load(folder / "owners.npy")
        np.save(folder / "owners.npy", owners + len(owners))
    again = Hashed()
    assert NameIndex(graph, again, cache).search(["banor"], k=5) == expected
    assert len(again.encoded) > 1


def test_a_folder_without_cache_goes_with_its_index(toy_graph: KnowledgeGraph) -> None:
    vectors = NameVectors(toy_graph, Hashed(), None, aliases=False)
    folder = vectors.folder
    assert map_table(folder, toy_graph.num_entities).keys.shape == (11, 2)
    assert vectors.nbytes == sum(file.stat().st_size for file in folder.iterdir())
    del vectors
    assert not folder.exists()


def test_find_puts_the_very_name_first(tmp_path: Path) -> None:
    names = [("Zürich", ["Zurigo"]), ("Zurich, Kansas", []), ("Москва", ["Moscow"]), ("東京", ["Tokyo"])]
    graph = graph_of(tmp_path / "g", [*names, *syllables(20)])
    index = NameIndex(graph, Hashed(), aliases=True)
    found = index.find(["ZURICH", "москва", "東京", "zurigo!", "Mosow"], k=3)
    assert [(m[0].entity, m[0].name, m[0].score) for m in found[:3]] == [
        (0, "Zürich", 1.0),
        (2, "Москва", 1.0),
        (3, "東京", 1.0),
    ]
    assert (found[3][0].entity, found[3][0].name) == (0, "Zurigo")
    assert (found[4][0].entity, found[4][0].name) == (2, "Moscow")
    assert found[4][0].score < 1
    assert all(len({m.entity for m in matches}) == 3 for matches in found)
    assert index.find([], k=3) == []


class Blind(Hashed):
    """Gives everything that is not Latin one vector."""

    fingerprint = "blind"

    def encode(self, texts: Sequence[str]) -> Tensor:
        return super().encode([text if text.isascii() else "?" for text in texts])


def test_names_that_the_encoder_cannot_read_do_not_score_as_equal(tmp_path: Path) -> None:
    names = [("Georgia", ["საქართველო"]), ("Ethiopia", ["ኢትዮጵያ"]), ("Thailand", ["ไทย"])]
    graph = graph_of(tmp_path / "g", names)
    exact, misspelt = NameIndex(graph, Blind(), aliases=True).find(["საქართველო", "საქართველა"], k=3)
    assert (exact[0].entity, exact[0].score) == (0, 1.0)
    assert all(match.score < 0.5 for match in exact[1:])
    assert (misspelt[0].entity, misspelt[0].name) == (0, "საქართველო")
    assert all(match.score < 0.5 for match in misspelt[1:])


def test_an_empty_graph_of_names(tmp_path: Path) -> None:
    graph = graph_of(tmp_path / "g", [("one", [])])
    assert [m.name for m in NameIndex(graph, Hashed()).find([""], k=5)[0]] == ["one"]


def test_a_quantizer_of_another_kind_or_size_is_refused(tmp_path: Path) -> None:
    """Its numbers would lie outside the bytes."""
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((40, 16)).astype(np.float32)
    write(tmp_path, train(vectors), 40, [(np.arange(40), vectors)])
    CodedNames(tmp_path, 16, 40, None)
    whole = faiss.read_index(str(tmp_path / name_codes.QUANTIZER))
    whole.add(vectors)
    other = faiss.IndexPreTransform(faiss.RandomRotationMatrix(16, 16), faiss.IndexFlatIP(16))
    for index in (whole, other, faiss.IndexFlatIP(16)):
        faiss.write_index(index, str(tmp_path / name_codes.QUANTIZER))
        with pytest.raises(ValueError, match="quantizer"):
            CodedNames(tmp_path, 16, 40, None)
