from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.withhold import without_images


def test_nothing_withheld_is_the_same_graph(toy_graph: KnowledgeGraph, tmp_path: Path) -> None:
    copy = without_images(toy_graph, np.zeros(0, dtype=np.int64), tmp_path / "copy")
    assert copy.fingerprint == toy_graph.fingerprint
    assert copy.path != toy_graph.path


def test_it_equals_a_build_without_those_images(toy_folder: Path, tmp_path: Path) -> None:
    build(toy_folder, tmp_path / "whole")
    graph = KnowledgeGraph.open(tmp_path / "whole")
    rows = np.array([1], dtype=np.int64)
    gone = graph.entity_id(int(graph.image_entity[1])), graph.image_kinds[1]
    lines = (toy_folder / "images.tsv").read_text(encoding="utf8").splitlines()
    kept = [line for line in lines if (line.split("\t")[0], line.split("\t")[2]) != gone]
    assert len(kept) == len(lines) - 1
    (toy_folder / "images.tsv").write_text("\n".join(kept) + "\n", encoding="utf8")
    build(toy_folder, tmp_path / "expected")
    expected = KnowledgeGraph.open(tmp_path / "expected")
    found = without_images(graph, rows, tmp_path / "found")
    assert found.fingerprint == expected.fingerprint
    assert found.image_entity.tolist() == expected.image_entity.tolist()
    assert found.image_kinds == expected.image_kinds
    names = [sorted(p.relative_to(g.path).as_posix() for p in g.path.rglob("*")) for g in (found, expected)]
    assert names[0] == names[1]
    assert all(Path(file).is_file() for file in found.image_files)
    shutil.rmtree(graph.path)
    assert found.labels([0]) == expected.labels([0])


def test_other_places_are_refused(toy_graph: KnowledgeGraph, tmp_path: Path) -> None:
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(DataError, match="cannot take the place"):
        without_images(toy_graph, none, toy_graph.path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="something other than a graph store"):
        without_images(toy_graph, none, tmp_path / "mine")
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"
