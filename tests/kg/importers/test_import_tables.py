from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.importers.tables import Format
from vispath_lit.kg.staging.run import import_graph
from vispath_lit.kg.store import KnowledgeGraph


def triples(store: Path) -> set[tuple[str, str, str]]:
    graph = KnowledgeGraph.open(store)
    found = set()
    for i in range(graph.num_entities):
        row = slice(int(graph.out_indptr[i]), int(graph.out_indptr[i + 1]))
        for relation, tail in zip(graph.out_relation[row], graph.out_tail[row], strict=True):
            found.add((graph.entity_id(i), graph.relation_id(int(relation)), graph.entity_id(int(tail))))
    return found


ROWS = [("a b", "likes", "c"), ("c", "has, part", 'd"x'), ("é", "likes", "a b")]


@pytest.mark.parametrize("form", ["tsv", "csv", "parquet", "tsv.gz"])
@pytest.mark.parametrize("header", [False, True])
def test_the_same_triples_from_every_form(tmp_path: Path, form: str, header: bool) -> None:
    path, names = tmp_path / f"t.{form}", ["weight", "o", "s", "r"]
    table = [["0.5", o, s, r] for s, r, o in ROWS]
    lines = [names, *table] if header else table
    if form == "csv":
        quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in line) for line in lines)
        path.write_text("\r\n".join(quoted) + "\r\n", encoding="utf8")
    elif form == "parquet":
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*table, strict=True)), strict=True))), path)
    else:
        data = "\n".join("\t".join(line) for line in lines).encode()
        path.write_bytes(gzip.compress(data) if form.endswith("gz") else data)
    columns = "s,r,o" if header or form == "parquet" else "3,4,2"
    report = import_graph(Format((path,), columns=columns, header=header), tmp_path / "store")
    assert triples(tmp_path / "store") == set(ROWS)
    assert report.read == {"triples": 3}


def test_names_and_pictures_beside_the_triples(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("a\tr\tb\n")
    (tmp_path / "e.tsv").write_text("a\tAlpha\tA|First||A\nlone\tLonely\t\n")
    (tmp_path / "r.tsv").write_text("r\tis related to\n")
    importer = Format((tmp_path / "t.tsv",), entities=tmp_path / "e.tsv", relations=tmp_path / "r.tsv")
    import_graph(importer, tmp_path / "store")
    graph = KnowledgeGraph.open(tmp_path / "store")
    assert graph.labels([0, 1, 2]) == ["Alpha", "Lonely", "b"]
    assert graph.aliases(0) == ("A", "First")
    assert graph.relation_label(0) == "is related to"
    (tmp_path / "e.tsv").write_text("a\tAlpha\na\tAgain\n")
    with pytest.raises(DataError, match=r"e\.tsv, line 2: repeated id in entities \(a\)"):
        import_graph(importer, tmp_path / "store")


FAULTS = [
    ('a,b,"c', "quote that does not end in its line"),
    ('a,b,"c",d', "wrong number of columns"),
    ('a"b,c"d,e,f', "wrong number of columns"),  # quotes inside a field that does not begin with one
    (' "a,b",c,d', "wrong number of columns"),
    ('"a"b"c",d,e', "quote that does not end its field"),
    ('a,b,"\0"', "control character"),
    ('a,"b", ', "empty object"),
]


@pytest.mark.parametrize(("line", "reason"), FAULTS)
def test_faults_in_quoted_lines(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text(f'"x","r","y"\n\n{line}\n"y","r","z"\n')
    with pytest.raises(DataError, match=rf"t\.csv, line 3: {reason}"):
        import_graph(Format((tmp_path / "t.csv",)), tmp_path / "store")
    report = import_graph(Format((tmp_path / "t.csv",)), tmp_path / "store", on_error="skip")
    assert (report.triples, sum(report.skipped.values())) == (2, 1)


@pytest.mark.parametrize(
    ("line", "subject"),
    [
        ('5"" disk,r,y', '5"" disk'),
        ('the "Big" one,r,y', 'the "Big" one'),
        ('"a"b,r,y', "ab"),
        ('"a,""b"" ",r,y', 'a,"b" '),
    ],
)
def test_quotes_that_are_part_of_a_name(tmp_path: Path, line: str, subject: str) -> None:
    (tmp_path / "t.csv").write_text(f"{line}\n")
    import_graph(Format((tmp_path / "t.csv",)), tmp_path / "store")
    assert triples(tmp_path / "store") == {(subject, "r", "y")}


@pytest.mark.parametrize("form", ["tsv", "csv"])
@pytest.mark.parametrize("header", [False, True])
def test_blank_lines_before_the_first_one_are_none(tmp_path: Path, form: str, header: bool) -> None:
    mark = "," if form == "csv" else "\t"
    lines = ["", "", *([mark.join(("s", "r", "o"))] if header else []), mark.join(("a", "likes", "b")), "c"]
    (tmp_path / f"t.{form}").write_text("\r\n".join(lines))
    importer = Format((tmp_path / f"t.{form}",), columns="s,r,o" if header else "", header=header)
    with pytest.raises(DataError, match=rf"line {len(lines)}: wrong number of columns \(1, expected 3\)"):
        import_graph(importer, tmp_path / "store")
    import_graph(importer, tmp_path / "store", on_error="skip")
    assert triples(tmp_path / "store") == {("a", "likes", "b")}


def test_a_first_line_that_is_no_csv_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('\n"a,b,c\nx,r,y\n')
    with pytest.raises(DataError, match=r"t\.csv, line 2: a quote that does not end its field"):
        import_graph(Format((tmp_path / "t.csv",)), tmp_path / "store")


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("s\tr\to\na\tb\tc\n")
    with pytest.raises(DataError, match=r"no column 'p'; it has s, r, o\. Say which with --columns"):
        import_graph(Format((tmp_path / "t.tsv",), columns="s,p,o", header=True), tmp_path / "store")
    for wrong in ("s,p", "s,s,o", "s,,o"):
        with pytest.raises(DataError, match="expected three"):
            Format((tmp_path / "t.tsv",), columns=wrong)
    pq.write_table(pa.table({"s": [["x"]], "r": ["a"], "o": ["b"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"column 's' of list.* is no text"):
        import_graph(Format((tmp_path / "t.parquet",), columns="s,r,o"), tmp_path / "store")


# Blanks, escapes and marks of TSV, CSV and aliases, and line ends of other worlds.
NAME = st.text("ab~é中\\|\"', \x01\x0b\x1c\x85\u2028\ufeff", min_size=0, max_size=4).map("n{}".format)


@given(st.lists(st.tuples(NAME, NAME, NAME), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_any_triples_come_back_and_a_folder_is_the_same_store(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf8")
    report = import_graph(Format((folder / "t.tsv",)), folder / "store")
    assert triples(folder / "store") == set(rows)
    assert report.duplicate_triples == len(rows) - len(set(rows))
    import_graph(Format((folder / "t.tsv",)), folder / "folder", as_folder=True)
    assert build(folder / "folder", folder / "second").fingerprint == report.fingerprint
