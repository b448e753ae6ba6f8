from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import DataError, UnknownEntityError
from vispath_lit.kg.csr import adjacency, heads, relation_dtype
from vispath_lit.kg.manifest import NAME
from vispath_lit.kg.store import KnowledgeGraph

Triples = list[tuple[int, int, int]]
MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
TRIPLES = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=30
)


def rows(indptr: np.ndarray, relation: np.ndarray, tail: np.ndarray) -> Triples:
    return [
        (e, int(relation[k]), int(tail[k]))
        for e in range(len(indptr) - 1)
        for k in range(indptr[e], indptr[e + 1])
    ]


@settings(max_examples=30, deadline=None)
@given(triples=TRIPLES)
def test_both_directions_hold_each_distinct_triple_once_and_sorted(
    make_graph: MakeGraph, triples: Triples
) -> None:
    graph = make_graph(6, 3, triples)
    assert graph.num_triples == len(set(triples))
    assert rows(graph.out_indptr, graph.out_relation, graph.out_tail) == sorted(set(triples))
    backwards = sorted({(t, r, h) for h, r, t in triples})
    assert rows(graph.in_indptr, graph.in_relation, graph.in_tail) == backwards
    assert graph.out_degrees().tolist() == [sum(h == e for h, _, _ in set(triples)) for e in range(6)]
    assert graph.degrees().sum() == 2 * graph.num_triples


@given(triples=TRIPLES, offset=st.sampled_from([0, 2**31 - 7]))
def test_packed_and_column_sort_agree(triples: Triples, offset: int) -> None:
    """With ids near 2^31 and many relations a key does not fit 64 bits."""
    head, relation, tail = (np.array(column) for column in zip(*triples, strict=True))
    small = adjacency(head, relation, tail, 6, 3)
    wide = adjacency(head, relation, tail, 6, 2**61)
    assert rows(small.indptr, small.relation, small.tail) == rows(wide.indptr, wide.relation, wide.tail)
    assert heads(small.indptr).tolist() == [h for h, _, _ in sorted(set(triples))]
    assert [str(edges.relation.dtype) for edges in (small, wide)] == ["uint16", "int32"]


def test_relation_width() -> None:
    assert relation_dtype(65_536) == np.uint16
    assert relation_dtype(65_537) == np.int32


def test_arrays_are_mapped_not_copied(toy_graph: KnowledgeGraph) -> None:
    for name in ("out_indptr", "out_relation", "out_tail", "in_indptr", "in_relation", "in_tail"):
        array = getattr(toy_graph, name)
        assert isinstance(array.base, np.memmap)
        assert not array.flags.writeable
    assert [str(a.dtype) for a in (toy_graph.out_indptr, toy_graph.out_tail)] == ["int64", "int32"]


def test_texts(toy_graph: KnowledgeGraph) -> None:
    france = toy_graph.entity_index("fr")
    assert toy_graph.entity_id(france) == "fr"
    assert toy_graph.label(france) == "France"
    assert toy_graph.aliases(france) == ("French Republic", "République française")
    assert toy_graph.aliases(toy_graph.entity_index("mc")) == ()
    assert toy_graph.type_of(france) == "country"
    assert toy_graph.description(france) == "A country in western Europe."
    wanted = [toy_graph.entity_index(id) for id in ("zur", "fr", "fr")]
    for indices in (wanted, np.array(wanted), torch.tensor(wanted)):
        assert toy_graph.labels(indices) == ["Zürich", "France", "France"]
        assert toy_graph.types(indices) == ["city", "country", "country"]
        assert toy_graph.entity_ids(indices) == ["zur", "fr", "fr"]
    assert toy_graph.labels([]) == []
    for outside in (12, -1):
        with pytest.raises(IndexError):
            toy_graph.labels([outside])
        for read in (toy_graph.label, toy_graph.aliases, toy_graph.entity_id):
            with pytest.raises(UnknownEntityError, match=f"entity index {outside}; expected 0 to 11"):
                read(outside)


def test_relations_are_signed(toy_graph: KnowledgeGraph) -> None:
    count = toy_graph.num_relations
    capital, borders = toy_graph.relation_index("capital"), toy_graph.relation_index("borders")
    assert toy_graph.relation_index("~capital") == capital + count
    assert toy_graph.relation_id(capital + count) == "~capital"
    assert toy_graph.relation_label(capital + count) == "capital of"
    assert toy_graph.relation_label(borders + count) == "inverse of borders"
    assert toy_graph.relation_label(borders) == "borders"
    assert len(toy_graph.relation_labels()) == 2 * count
    assert [toy_graph.relation_index(toy_graph.relation_id(r)) for r in range(2 * count)] == list(
        range(2 * count)
    )


def test_unknown_ids_say_what_to_do(toy_graph: KnowledgeGraph) -> None:
    with pytest.raises(UnknownEntityError, match=r"'France' is not in the graph .*not a label"):
        toy_graph.entity_index("France")
    with pytest.raises(UnknownEntityError, match="did you mean 'capital'"):
        toy_graph.relation_index("~capitol")
    for signed in (-1, 14):
        with pytest.raises(UnknownEntityError, match="expected 0 to 13"):
            toy_graph.relation_id(signed)
    assert toy_graph.entity_indices(["fr", "\ud800", "", "de"]).tolist() == [0, -1, -1, 1]


def test_equal_hashes_are_told_apart_by_the_text(toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash that is the same for every text: the look-up is slow, and still right."""
    from vispath_lit.kg import build, folding, lookup

    def same(texts: Iterable[str]) -> np.ndarray:
        return np.zeros(len(list(texts)), dtype=np.uint64)

    for module in (folding, lookup):
        monkeypatch.setattr(module, "hash_texts", same)
    for module in (folding, build):
        monkeypatch.setattr(module, "hash_column", same)
    build.build(toy_folder, toy_folder.parent / "store")
    graph = KnowledgeGraph.open(toy_folder.parent / "store")
    assert [graph.entity_index(graph.entity_id(e)) for e in range(12)] == list(range(12))
    with pytest.raises(UnknownEntityError):
        graph.entity_index("absent")


def test_images(toy_graph: KnowledgeGraph) -> None:
    found = toy_graph.images_of(toy_graph.entity_index("fr"))
    assert [kind for _, kind in found] == ["flag", "outline"]
    assert all(Path(path).is_file() and Path(path).is_relative_to(toy_graph.path) for path, _ in found)
    assert toy_graph.image_entity.tolist() == [0, 0, 1]
    assert toy_graph.image_kinds == ["flag", "outline", "flag"]
    assert toy_graph.image_files[:2] == [path for path, _ in found]
    assert toy_graph.images_of(toy_graph.entity_index("eu")) == []


def test_a_store_moves_and_is_mapped_anew_in_other_processes(
    toy_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    shutil.move(toy_graph.path, tmp_path / "moved")
    shutil.rmtree(tmp_path / "toy")
    graph = KnowledgeGraph.open(str(tmp_path / "moved"))
    assert Path(graph.images_of(0)[0][0]).is_file()
    data = pickle.dumps(graph)
    assert len(data) < 1000
    assert pickle.loads(data).fingerprint == toy_graph.fingerprint


def files(graph: KnowledgeGraph) -> list[Path]:
    return sorted(path for path in graph.path.iterdir() if path.is_file() and path.name != NAME)


def test_a_truncated_or_absent_file_is_named(toy_graph: KnowledgeGraph) -> None:
    assert len(files(toy_graph)) == 16
    for path in files(toy_graph):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(
            DataError, match=f"damaged: found {path.name} .*build it again with: vispath kg build"
        ):
            KnowledgeGraph.open(toy_graph.path)
        path.unlink()
        with pytest.raises(DataError, match=f"{path.name} of no bytes"):
            KnowledgeGraph.open(toy_graph.path)
        path.write_bytes(whole)
    KnowledgeGraph.open(toy_graph.path)


def test_overwritten_files_of_the_right_size_are_refused(toy_graph: KnowledgeGraph) -> None:
    for path in files(toy_graph):
        whole = path.read_bytes()
        path.write_bytes(b"\x93NUMPY\x01\x00" + b"\xff" * (len(whole) - 8))
        with pytest.raises(DataError, match="damaged"):
            KnowledgeGraph.open(toy_graph.path)
        path.write_bytes(whole)


def rewritten(graph: KnowledgeGraph, file: str, content: Any, piece: int = 100) -> None:
    """Writes a table or an array into a store, and its new size into the manifest."""
    path = graph.path / file
    if isinstance(content, pa.Table):
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, content.schema) as writer:
            writer.write_table(content, max_chunksize=piece)
    else:
        np.save(path, content)
    manifest = json.loads((graph.path / NAME).read_text())
    manifest["files"][file] = path.stat().st_size
    (graph.path / NAME).write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    "file",
    ["../../secret.png", "/etc/secret.png", "ab/../../../secret.png", "", "secret.png", f"ab/{0:040}./../x"],
)
def test_a_picture_outside_the_store_is_refused(toy_graph: KnowledgeGraph, file: str) -> None:
    kinds = pa.array(["flag"] * 3, pa.large_string())
    good = [path.removeprefix(f"{toy_graph.path}/images/") for path in toy_graph.image_files]
    table = pa.table({"file": pa.array([*good[:2], file], pa.large_string()), "kind": kinds})
    rewritten(toy_graph, "images.arrow", table)
    with pytest.raises(DataError, match=r"damaged: found images\.arrow with the file"):
        KnowledgeGraph.open(toy_graph.path)


@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize(
    ("name", "place", "value"), [("tail", 3, -1), ("tail", 0, 12), ("relation", 5, 7), ("indptr", 2, 30)]
)
def test_edges_that_lead_nowhere_are_refused(
    toy_graph: KnowledgeGraph, direction: str, name: str, place: int, value: int
) -> None:
    array = np.load(toy_graph.path / f"{direction}_{name}.npy")
    array[place] = value
    rewritten(toy_graph, f"{direction}_{name}.npy", array)
    with pytest.raises(DataError, match=rf"damaged: found {direction}_{name}\.npy"):
        KnowledgeGraph.open(toy_graph.path)


@pytest.mark.parametrize("owners", [[0, 1, 12], [-1, 0, 0], [1, 0, 0]])
def test_pictures_of_no_entity_or_out_of_order_are_refused(
    toy_graph: KnowledgeGraph, owners: list[int]
) -> None:
    rewritten(toy_graph, "image_entity.npy", np.array(owners))
    with pytest.raises(DataError, match=r"damaged: found image_entity\.npy"):
        KnowledgeGraph.open(toy_graph.path)


def test_columns_that_are_missing_or_in_pieces_are_refused(toy_graph: KnowledgeGraph) -> None:
    with pa.ipc.open_file(str(toy_graph.path / "relations.arrow")) as opened:
        whole = opened.read_all()
    rewritten(toy_graph, "relations.arrow", whole, piece=2)
    with pytest.raises(DataError, match=r"damaged: found relations\.arrow .*in one piece"):
        KnowledgeGraph.open(toy_graph.path)
    rewritten(toy_graph, "relations.arrow", whole.drop_columns(["label"]))
    with pytest.raises(
        DataError, match=r"damaged: found relations\.arrow with the columns id, inverse_label"
    ):
        KnowledgeGraph.open(toy_graph.path)
    rewritten(toy_graph, "relations.arrow", whole)
    assert KnowledgeGraph.open(toy_graph.path).relation_labels() == toy_graph.relation_labels()


def test_files_of_pictures_that_are_no_texts_are_refused(toy_graph: KnowledgeGraph) -> None:
    kinds = pa.array(["flag"] * 3, pa.large_string())
    for column in (pa.array([1, 2, 3]), pa.array([None] * 3, pa.large_string())):
        rewritten(toy_graph, "images.arrow", pa.table({"file": column, "kind": kinds}))
        with pytest.raises(DataError, match=r"damaged: found images\.arrow"):
            KnowledgeGraph.open(toy_graph.path)


@pytest.mark.parametrize(("file", "begin"), [("out_tail.npy", 8), ("relations.arrow", -420)])
def test_any_altered_byte_of_a_header_is_damage_or_none(
    toy_graph: KnowledgeGraph, file: str, begin: int
) -> None:
    path = toy_graph.path / file
    whole = path.read_bytes()
    told: list[str] = []
    for place in range(begin % len(whole), len(whole))[:400:2]:
        for byte in (0x0A, 0x28, 0xB6):  # a line's end, a bracket that nothing closes, half a character
            path.write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                KnowledgeGraph.open(toy_graph.path)
            except DataError as error:
                told.append(str(error))
    assert len(told) > 20
    assert all("damaged" in one for one in told)


def test_a_pickled_array_is_never_loaded(toy_graph: KnowledgeGraph) -> None:
    path = toy_graph.path / "image_entity.npy"
    np.save(path, np.array([{"a": 1}, None, 3], dtype=object), allow_pickle=True)
    manifest = json.loads((toy_graph.path / NAME).read_text())
    manifest["files"][path.name] = path.stat().st_size
    (toy_graph.path / NAME).write_text(json.dumps(manifest))
    with pytest.raises(DataError, match=r"image_entity.npy: .*(pickle|object)"):
        KnowledgeGraph.open(toy_graph.path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"version": 99}, "version 99, this program reads version 1; build it again"),
        ({"format": "parquet"}, "is not that of a graph store"),
        ({"num_triples": 31}, "damaged"),
        ({"num_entities": -1}, "num_entities = -1, expected a count"),
        ({"num_relations": True}, "num_relations = True"),
        ({"num_relations": 8}, "relations.arrow with 7 rows, expected 8"),
        ({"files": []}, "without files or fingerprint"),
        ({"files": {"../x": 3}}, "damaged"),
        ({"fingerprint": 3}, "without files or fingerprint"),
    ],
)
def test_manifests(toy_graph: KnowledgeGraph, change: dict[str, object], reason: str) -> None:
    manifest = json.loads((toy_graph.path / NAME).read_text())
    (toy_graph.path / NAME).write_text(json.dumps(manifest | change))
    with pytest.raises(DataError, match=reason):
        KnowledgeGraph.open(toy_graph.path)


@pytest.mark.parametrize("text", ["", "{", "[1]", "\xff", "[" * 100_000])
def test_unreadable_manifests(toy_graph: KnowledgeGraph, text: str) -> None:
    (toy_graph.path / NAME).write_bytes(text.encode("latin1"))
    with pytest.raises(DataError, match="make one with: vispath kg build"):
        KnowledgeGraph.open(toy_graph.path)


def test_a_folder_without_a_manifest_is_no_store(toy_folder: Path) -> None:
    with pytest.raises(DataError, match="looks like a graph folder: build it first"):
        KnowledgeGraph.open(toy_folder)
    with pytest.raises(DataError, match="no such graph store; make one with"):
        KnowledgeGraph.open(toy_folder / "absent")
