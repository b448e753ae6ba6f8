from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.build import build
from vispath_lit.kg.folding import fold, name_hashes, strip_accents
from vispath_lit.kg.lookup import hash_table, hash_texts
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.tsv import join_aliases


class Letters:
    """Encodes a text by how often each letter occurs in it."""

    dim = 26
    fingerprint = "letters"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Tensor:
        self.encoded += texts
        counts = torch.tensor([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts])
        return torch.nn.functional.normalize(counts.float() + 1e-3)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def ids(graph: KnowledgeGraph, entities: Sequence[int]) -> list[str]:
    return graph.entity_ids(list(entities))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("France", ["fr"]),
        ("  fRANCE ", ["fr"]),
        ("french\u00a0 REPUBLIC", ["fr"]),
        ("Paris", ["par", "pt"]),
        ("paris, texas", ["pt"]),
        ("Zürich", ["zur"]),
        ("Zu\u0308rich", ["zur"]),
        ("ZURICH", ["zur"]),
        ("republique francaise", ["fr"]),
        ("Ｆｒａｎｃｅ", ["fr"]),
        ("Frânce", ["fr"]),
        ("Schweiz", ["ch"]),
        ("fr", []),
        ("", []),
    ],
)
def test_exact(toy_graph: KnowledgeGraph, name: str, expected: list[str]) -> None:
    assert ids(toy_graph, NameIndex(toy_graph).exact(name)) == expected


def test_an_entity_bears_its_label_and_its_aliases(toy_graph: KnowledgeGraph) -> None:
    index = NameIndex(toy_graph)
    for entity in range(toy_graph.num_entities):
        own = [toy_graph.label(entity), *toy_graph.aliases(entity)]
        assert all(index.bears(entity, name.upper()) for name in own)
        assert not index.bears(entity, own[0] + "x")
        assert not index.bears(entity, "")


def test_labels_come_before_aliases(toy_folder: Path) -> None:
    with (toy_folder / "entities.tsv").open("a", encoding="utf8") as file:
        file.write("cur\tEUR\t\tcode\t\n")
    build(toy_folder, toy_folder.parent / "store")
    graph = KnowledgeGraph.open(toy_folder.parent / "store")
    assert ids(graph, NameIndex(graph).exact("eur")) == ["cur", "eur"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What is the capital of France?", {"France": ["fr"]}),
        ("which currency has the FRENCH republic's neighbour", {"FRENCH republic": ["fr"]}),
        ("Is Paris, Texas larger than Paris?", {"Paris, Texas": ["pt"], "Paris": ["par", "pt"]}),
        ("(Zurich (city)) on the Rhine", {"Zurich (city)": ["zur"], "Rhine": ["rhi"]}),
        ("Zurich on the Rhein", {"Zurich": ["zur"], "Rhein": ["rhi"]}),
        ("Parisian franceland", {}),
        ("", {}),
        ("?! ...", {}),
    ],
)
def test_mentions(toy_graph: KnowledgeGraph, text: str, expected: dict[str, list[str]]) -> None:
    mentions = NameIndex(toy_graph).find_mentions(text)
    assert {text[slice(*span)]: ids(toy_graph, entities) for span, entities in mentions} == expected
    assert mentions == sorted(mentions)


def test_mentions_in_scripts_without_blanks_and_with_marks(toy_folder: Path) -> None:
    names = {"jp": "日本", "jp2": "東京都", "in": "भारत", "us": "U.S.", "cpp": "C++", "x": "Q"}
    with (toy_folder / "entities.tsv").open("a", encoding="utf8") as file:
        file.writelines(f"{id}\t{name}\t\t\t\n" for id, name in names.items())
    build(toy_folder, toy_folder.parent / "store")
    graph = KnowledgeGraph.open(toy_folder.parent / "store")
    text = "日本の東京都 और भारत से U.S. with C++, Q"
    found = [(text[slice(*m.span)], ids(graph, m.entities)) for m in NameIndex(graph).find_mentions(text)]
    assert found == [(name, [id]) for id, name in names.items() if id != "x"]


@settings(max_examples=150)
@given(st.text(st.sampled_from("aAéE\u0301ßſ \t\u00a0\x1c\x0bΣςﬁ日\u0130"), max_size=8))
def test_the_tables_hold_what_folding_gives(text: str) -> None:
    """Arrow folds ASCII names at the build, Python folds the question: both must agree."""
    import pyarrow as pa

    labels = pa.array(["x", text], type=pa.large_string())
    aliases = pa.array([["A\tB "], []], type=pa.large_list(pa.large_string()))
    hashed = name_hashes(labels, aliases)
    names = hash_table(hashed.hashes, hashed.entities)
    bare = hash_table(hashed.bare_hashes, hashed.bare_entities)
    for name, entity in (("x", 0), ("a b", 0), (fold(text), 1)):
        assert entity in names.find([name])[0]
    folded = fold(text)
    assert (1 in bare.find([strip_accents(folded)])[0]) == (strip_accents(folded) != folded)
    assert fold(folded) == folded
    assert len(names.hashes) == len({(h, e) for h, e in zip(names.hashes, names.entities, strict=True)})
    assert np.all(np.diff(names.hashes.astype(object)) >= 0)
    assert len(hash_texts([text, text])) == 2


def test_search_ranks_names_by_cosine(toy_graph: KnowledgeGraph) -> None:
    index = NameIndex(toy_graph, Letters())
    first, second = index.search(["ecnarf", "Paris"], k=3)
    assert (ids(toy_graph, [first[0].entity]), first[0].name) == (["fr"], "France")
    assert first[0].score == pytest.approx(1, abs=2e-3)
    assert ids(toy_graph, [match.entity for match in second[:2]]) == ["par", "pt"]
    assert [match.score for match in second] == sorted((match.score for match in second), reverse=True)
    assert len({match.entity for match in second}) == 3
    assert index.search([]) == []
    assert len(index.search(["x"], k=100)[0]) == toy_graph.num_entities


def test_search_equals_a_plain_product(toy_graph: KnowledgeGraph) -> None:
    encoder = Letters()
    labels = toy_graph.labels(range(12))
    vectors, query = encoder.encode(labels).half().float(), encoder.encode(["a river in the alps"])
    scores = (vectors @ query[0]).tolist()
    # Ties: the name that comes first, here "Paris" before "Rhine", with all its entities.
    expected = sorted(range(12), key=lambda e: (-round(scores[e], 6), labels.index(labels[e]), e))
    found = NameIndex(toy_graph, encoder).search(["a river in the alps"], k=12)[0]
    assert [match.entity for match in found] == expected


def test_aliases_are_searched_where_asked(toy_graph: KnowledgeGraph) -> None:
    assert NameIndex(toy_graph, Letters()).search(["Deutschland"], k=1)[0][0].name != "Deutschland"
    found = NameIndex(toy_graph, Letters(), aliases=True).search(["Deutschland"], k=12)[0]
    assert (ids(toy_graph, [found[0].entity]), found[0].name) == (["de"], "Deutschland")
    assert len({match.entity for match in found}) == len(found) == 12


def test_search_needs_an_encoder_and_a_positive_k(toy_graph: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="no text encoder"):
        NameIndex(toy_graph).search(["x"])
    with pytest.raises(ConfigError, match="k is 0"):
        NameIndex(toy_graph, Letters()).search(["x"], k=0)


def test_aliases_with_bars_are_names_too(toy_folder: Path) -> None:
    with (toy_folder / "entities.tsv").open("a", encoding="utf8") as file:
        file.write(f"b\tBar\t{join_aliases(['a|b', 'c'])}\t\t\n")
    build(toy_folder, toy_folder.parent / "store")
    graph = KnowledgeGraph.open(toy_folder.parent / "store")
    assert graph.aliases(graph.entity_index("b")) == ("a|b", "c")
    assert ids(graph, NameIndex(graph).exact("A|B")) == ["b"]


class Blind:
    """Gives every text one vector, as an encoder does with a script that it does not know."""

    dim = 2
    fingerprint = "blind"

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.tensor([[1.0, 0.0]]).repeat(len(texts), 1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def test_names_as_long_as_texts_are_told_apart_in_no_time(toy_folder: Path, tmp_path: Path) -> None:
    file = toy_folder / "entities.tsv"
    lines = [f"long\t{'ab' * 4000}\t\t\t\n", f"other\t{'xy' * 4000}\t\t\t\n"]
    file.write_text(file.read_text(encoding="utf8") + "".join(lines), encoding="utf8")
    build(toy_folder, tmp_path / "store")
    index = NameIndex(KnowledgeGraph.open(tmp_path / "store"), Blind())
    begin = time.process_time()
    (found,) = index.find(["ba" * 4000], k=14)
    assert time.process_time() - begin < 2
    alike = {match.name[:2]: match.score for match in found if len(match.name) > 1000}
    assert alike["ab"] == 1.0
    assert alike["xy"] == 0.0
