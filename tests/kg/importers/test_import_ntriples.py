from __future__ import annotations

import bz2
from pathlib import Path

import pytest

from vispath_lit.errors import DataError
from vispath_lit.kg.importers.ntriples import Format
from vispath_lit.kg.staging.run import import_graph
from vispath_lit.kg.store import KnowledgeGraph

pytest.importorskip("pyoxigraph")
LINES = r"""
# A comment.
<http://x/Paris> <http://x/p/capital_of> <http://x/France> .
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Paris"@en .
<http://x/Paris> <http://www.w3.org/2000/01/rdf-schema#label> "Parigi"@it .
<http://x/Paris> <http://www.w3.org/2004/02/skos/core#altLabel> "City \"of\" Light" .
<http://x/Paris> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://x/class/City> .
<http://x/France> <http://x/p/founded> "0843-08-10"^^<http://www.w3.org/2001/XMLSchema#date> .
<http://x/France> <http://x/p/motto> "Libert\u00E9,\n\u00E9galit\u00E9"@fr .
<http://x/France> <http://x/p/part> _:b .
_:b <http://x/p/near> <http://x/Saint%20Denis_(city)> .
<http://x/p/capital_of> <http://www.w3.org/2000/01/rdf-schema#label> "is the capital of"@en .
<http://x/Lonely> <http://www.w3.org/2000/01/rdf-schema#label> "Lonely" .
"""


def test_terms_become_entities(tmp_path: Path) -> None:
    (tmp_path / "a.nt.bz2").write_bytes(bz2.compress(LINES.encode()))
    report = import_graph(Format((tmp_path / "a.nt.bz2",)), tmp_path / "store")
    graph = KnowledgeGraph.open(tmp_path / "store")
    labels = {graph.entity_id(i): graph.label(i) for i in range(graph.num_entities)}
    (blank,) = (id for id in labels if id.startswith("_:"))
    assert labels == {
        "http://x/Paris": "Paris",
        "http://x/France": "France",
        "http://x/class/City": "City",
        '"0843-08-10"^^<http://www.w3.org/2001/XMLSchema#date>': "0843-08-10",
        '"Liberté,\\négalité"@fr': "Liberté, égalité",
        blank: blank,
        "http://x/Saint%20Denis_(city)": "Saint Denis (city)",
    }
    paris = graph.entity_index("http://x/Paris")
    assert (graph.aliases(paris), graph.type_of(paris)) == (('City "of" Light',), "City")
    assert graph.relation_label(graph.relation_index("http://x/p/capital_of")) == "is the capital of"
    assert report.triples == 6
    assert report.noted["texts in other languages, or empty, left out"] == 1


def test_options_and_blank_nodes_of_two_files(tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        (tmp_path / name).write_text(LINES)
    importer = Format(
        (tmp_path / "a.nt", tmp_path / "b.nt"), language="it", literals=False, keep_unlinked=True
    )
    report = import_graph(importer, tmp_path / "store")
    graph = KnowledgeGraph.open(tmp_path / "store")
    ids = [graph.entity_id(i) for i in range(graph.num_entities)]
    assert graph.label(graph.entity_index("http://x/Paris")) == "Parigi"
    assert len([id for id in ids if id.startswith("_:")]) == 2
    assert "http://x/Lonely" in ids
    assert not [id for id in ids if id.startswith('"')]
    assert report.noted["literals left out"] == 4


def test_a_statement_about_a_statement_is_named_or_counted(tmp_path: Path) -> None:
    about = "<http://x/a> <http://x/says> <<( <http://x/b> <http://x/p> <http://x/c> )>> .\n"
    (tmp_path / "a.nt").write_text(about + LINES)
    with pytest.raises(DataError, match=r"a\.nt, line 1: statement about a statement"):
        import_graph(Format((tmp_path / "a.nt",)), tmp_path / "store")
    report = import_graph(Format((tmp_path / "a.nt",)), tmp_path / "store", on_error="skip")
    assert report.skipped == {"statement about a statement (RDF 1.2)": 1}
    assert report.triples == 6


@pytest.mark.parametrize(
    "line",
    ["<http://x/a> <http://x/b> <http://x/c>", "<a> <b> <c> .", '<http://x/a> <http://x/b> "\\ud800" .', "x"],
)
def test_a_malformed_statement_is_named_or_counted(tmp_path: Path, line: str) -> None:
    (tmp_path / "a.nt").write_text(LINES)
    clean = import_graph(Format((tmp_path / "a.nt",)), tmp_path / "store")
    (tmp_path / "a.nt").write_text(f"{LINES}{line}\n")
    number = LINES.count("\n") + 1
    with pytest.raises(DataError, match=rf"a\.nt, line {number}: no N-Triples statement"):
        import_graph(Format((tmp_path / "a.nt",)), tmp_path / "other")
    report = import_graph(Format((tmp_path / "a.nt",)), tmp_path / "other", on_error="skip")
    assert report.skipped == {"no N-Triples statement": 1}
    assert (report.triples, report.entities) == (clean.triples, clean.entities)
