"""Random graphs on disk for the tests of the search."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from search_worlds import HashEncoder, Triple, World, WorldMaker

from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph


@pytest.fixture(scope="session")
def make_world(tmp_path_factory: pytest.TempPathFactory) -> WorldMaker:
    """Builds a store from triples of positions in two lists of labels."""
    root: Path = tmp_path_factory.mktemp("worlds")

    def make(triples: list[Triple], entity_labels: list[str], relation_labels: list[str]) -> World:
        folder = root / "graph"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        triples = sorted(set(triples))
        lines = "".join(f"e{s:02d}\tr{r:02d}\te{o:02d}\n" for s, r, o in triples)
        (folder / "triples.tsv").write_text("subject\trelation\tobject\n" + lines)
        lines = "".join(f"e{i:02d}\t{label}\t\tthing\t\n" for i, label in enumerate(entity_labels))
        (folder / "entities.tsv").write_text("id\tlabel\taliases\ttype\tdescription\n" + lines)
        lines = "".join(f"r{i:02d}\t{label}\n" for i, label in enumerate(relation_labels))
        (folder / "relations.tsv").write_text("id\tlabel\n" + lines)
        (folder / "images.tsv").write_text("entity\tpath\tkind\n")
        out = root / "store"
        build(folder, out)
        graph = KnowledgeGraph.open(out)
        assert [graph.entity_id(i) for i in range(len(entity_labels))] == [
            f"e{i:02d}" for i in range(len(entity_labels))
        ]
        return World(graph, triples, entity_labels, relation_labels, HashEncoder())

    return make
