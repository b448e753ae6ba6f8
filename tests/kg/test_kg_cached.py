"""The store of a graph folder: built once for its content, anew when anything in it changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vispath_lit.errors import DataError
from vispath_lit.kg import cached
from vispath_lit.kg.cached import folder_key, store_of
from vispath_lit.kg.store import KnowledgeGraph


def test_a_folder_is_built_once(toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_of(toy_folder, tmp_path / "cache")
    assert KnowledgeGraph.open(store).num_entities == 12

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr(cached, "build", refuse)
    assert store_of(str(toy_folder), tmp_path / "cache") == store
    assert store_of(store, tmp_path / "other") == store
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["triples.tsv", "entities.tsv", "relations.tsv", "images.tsv"])
def test_a_changed_table_is_another_key_whatever_its_time(toy_folder: Path, name: str) -> None:
    file = toy_folder / name
    before, stamp = folder_key(toy_folder), file.stat().st_mtime_ns
    content = file.read_bytes()
    file.write_bytes(content[:-2] + b"x\n")
    os.utime(file, ns=(stamp, stamp))
    assert folder_key(toy_folder) != before
    file.write_bytes(content)
    assert folder_key(toy_folder) == before


def test_a_changed_picture_and_a_missing_table_are_other_keys(toy_folder: Path) -> None:
    keys = [folder_key(toy_folder)]
    (toy_folder / "images" / "fr.png").write_bytes((toy_folder / "images" / "de.png").read_bytes() + b"\0")
    keys.append(folder_key(toy_folder))
    (toy_folder / "images.tsv").unlink()
    keys.append(folder_key(toy_folder))
    assert len(set(keys)) == 3


def test_skipping_bad_lines_is_another_store(toy_folder: Path, tmp_path: Path) -> None:
    with (toy_folder / "triples.tsv").open("a", encoding="utf8") as file:
        file.write("fr\tcapital\tnowhere\n")
    with pytest.raises(DataError, match=r"triples\.tsv"):
        store_of(toy_folder, tmp_path / "cache")
    assert list((tmp_path / "cache" / "stores").iterdir()) == []
    graph = KnowledgeGraph.open(store_of(toy_folder, tmp_path / "cache", "skip"))
    assert graph.num_triples == 30
    with pytest.raises(DataError, match=r"triples\.tsv"):
        store_of(toy_folder, tmp_path / "cache")


def test_no_folder_at_all(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere is no folder"):
        store_of(tmp_path / "nowhere", tmp_path)
