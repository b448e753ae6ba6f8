"""The graph folder of Atlas, built for two small countries with the real code and the real packages."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest

from vispath_lit.data.atlas.graph import GraphSummary, write_graph
from vispath_lit.data.atlas.relations import relations_by_id
from vispath_lit.errors import ConfigError
from vispath_lit.kg.build import build
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph

ONLY = ("LU", "SI")
AGAIN = """
import sys
from pathlib import Path
from vispath_lit.data.atlas.graph import write_graph
if __name__ == "__main__":
    write_graph(Path(sys.argv[1]), sys.argv[2:], workers=2)
"""


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, GraphSummary]:
    out = tmp_path_factory.mktemp("atlas")
    return out, write_graph(out, ONLY, workers=1)


@pytest.fixture(scope="module")
def graph(atlas: tuple[Path, GraphSummary], tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    out, _ = atlas
    store = tmp_path_factory.mktemp("store") / "store"
    report = build(out / "graph", store)
    assert not report.faults
    return KnowledgeGraph.open(store)


def table(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()][1:]


def objects(graph: KnowledgeGraph, subject: str, relation: str) -> list[str]:
    entity, wanted = graph.entity_index(subject), graph.relation_index(relation)
    rows = range(int(graph.out_indptr[entity]), int(graph.out_indptr[entity + 1]))
    return [graph.label(int(graph.out_tail[i])) for i in rows if int(graph.out_relation[i]) == wanted]


def test_same_packages_give_the_same_bytes(atlas: tuple[Path, GraphSummary], tmp_path: Path) -> None:
    """The second build runs in another process, where sets have another order, and draws in two more."""
    out, _ = atlas
    script = tmp_path / "again.py"
    script.write_text(AGAIN, encoding="utf-8")
    tmp_path = tmp_path / "atlas"
    command = [sys.executable, str(script), str(tmp_path), *reversed(ONLY)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    files = sorted(path.relative_to(out) for path in out.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file())
    for file in files:
        assert (out / file).read_bytes() == (tmp_path / file).read_bytes(), file


def test_facts_of_a_country(graph: KnowledgeGraph) -> None:
    assert objects(graph, "country:SI", "capital") == ["Ljubljana"]
    assert objects(graph, "country:SI", "currency") == ["Euro"]
    assert objects(graph, "country:SI", "borders_north") == ["Austria"]
    assert objects(graph, "country:SI", "borders_west") == ["Italy"]
    assert objects(graph, "country:SI", "highest_point") == ["Triglav"]
    assert set(objects(graph, "country:SI", "flag_colour")) >= {"white", "blue", "red"}
    assert objects(graph, "country:LU", "longest_border_with") == ["Belgium"]
    assert graph.description(graph.entity_index("country:LU")).startswith("Founded in 963")


def test_every_triple_keeps_to_its_relation(atlas: tuple[Path, GraphSummary]) -> None:
    out, _ = atlas
    types = {row[0]: row[3] for row in table(out / "graph" / "entities.tsv")}
    seen: set[tuple[str, str]] = set()
    triples = table(out / "graph" / "triples.tsv")
    assert triples == sorted(triples)
    for subject, relation, object_ in triples:
        rule = relations_by_id()[relation]
        assert types[subject] in rule.domain
        assert types[object_] in rule.range
        assert subject != object_
        assert not (rule.functional and (subject, relation) in seen), (subject, relation)
        seen.add((subject, relation))


def test_labels_are_distinct_within_a_type(atlas: tuple[Path, GraphSummary]) -> None:
    out, _ = atlas
    rows = table(out / "graph" / "entities.tsv")
    labels = [(row[3], row[1]) for row in rows]
    assert len(labels) == len(set(labels))
    assert all(row[1] and row[1] not in row[2].split("|") for row in rows)


def test_pictures_are_square_and_distinct(atlas: tuple[Path, GraphSummary], graph: KnowledgeGraph) -> None:
    out, summary = atlas
    assert len(summary.kinds) >= 7
    assert summary.images == len(graph.image_files)
    bytes_seen = set()
    for entity, path, kind in table(out / "graph" / "images.tsv"):
        file = out / "graph" / path
        assert path.startswith(f"images/{kind}/")
        assert load_image(file).size == (288, 288)
        assert file.read_bytes() not in bytes_seen, entity
        bytes_seen.add(file.read_bytes())
    on_disk = sum(1 for path in (out / "graph" / "images").rglob("*") if path.is_file())
    assert on_disk == summary.images


def test_attributions_name_every_package(atlas: tuple[Path, GraphSummary]) -> None:
    out, summary = atlas
    text = (out / "ATTRIBUTIONS.md").read_text(encoding="utf-8")
    for package, version in summary.packages.items():
        assert f"| {package} | {version} |" in text


def test_an_unknown_country_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="XX"):
        write_graph(tmp_path, ["XX"])
    assert list(tmp_path.iterdir()) == []


def test_the_summary_counts_what_was_written(atlas: tuple[Path, GraphSummary]) -> None:
    out, summary = atlas
    found = dataclasses.asdict(summary)
    assert found["entities"] == len(table(out / "graph" / "entities.tsv"))
    assert found["triples"] == len(table(out / "graph" / "triples.tsv"))
    assert found["relations"] == len(table(out / "graph" / "relations.tsv"))
