from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from PIL import Image

from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.importers.wikidata5m import Choice, Format
from vispath_lit.kg.manifest import is_store
from vispath_lit.kg.staging import stage as stage_module
from vispath_lit.kg.staging.run import import_graph
from vispath_lit.kg.store import KnowledgeGraph

ENTITIES = "Q1\tParis\tCity of Light\tLutetia\nQ2\tFrance\nQ3\nQ9\tin no triple\n\nQ4\tSeine\tSeine\t \n"
RELATIONS = "P1\tcapital of\tis the capital of\nP2\tflows through\n"
TRIPLES = {"train": "Q1\tP1\tQ2\nQ4\tP2\tQ1\n", "valid": "Q4\tP2\tQ2\nQ1\tP1\tQ2\n", "test": "Q3\tP7\tQ8\n"}
TEXT = "Q1\tParis is\tthe capital.\nQ8\tEight.\n"


def tar(path: Path, files: dict[str, str]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def published(tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    folder.mkdir()
    tar(
        folder / "wikidata5m_alias.tar.gz",
        {"wikidata5m_entity.txt": ENTITIES, "wikidata5m_relation.txt": RELATIONS},
    )
    tar(
        folder / "wikidata5m_transductive.tar.gz",
        {f"wikidata5m_transductive_{split}.txt": text for split, text in TRIPLES.items()},
    )
    (folder / "wikidata5m_text.txt").write_text(TEXT)
    return folder


def names(store: Path) -> dict[str, tuple[str, tuple[str, ...], str]]:
    graph = KnowledgeGraph.open(store)
    return {
        graph.entity_id(i): (graph.label(i), graph.aliases(i), graph.description(i))
        for i in range(graph.num_entities)
    }


def edges(store: Path) -> list[tuple[str, str, str]]:
    graph = KnowledgeGraph.open(store)
    return [
        (
            graph.entity_id(i),
            graph.relation_id(int(relation)),
            graph.entity_id(int(tail)),
        )
        for i in range(graph.num_entities)
        for relation, tail in zip(
            graph.out_relation[graph.out_indptr[i] : graph.out_indptr[i + 1]],
            graph.out_tail[graph.out_indptr[i] : graph.out_indptr[i + 1]],
            strict=True,
        )
    ]


def test_the_published_archives_become_a_store(published: Path, tmp_path: Path) -> None:
    report = import_graph(Format((published,)), tmp_path / "store")
    assert names(tmp_path / "store") == {
        "Q1": ("Paris", ("City of Light", "Lutetia"), "Paris is\tthe capital."),
        "Q2": ("France", (), ""),
        "Q3": ("Q3", (), ""),
        "Q4": ("Seine", (), ""),
        "Q8": ("Q8", (), "Eight."),
    }
    assert edges(tmp_path / "store") == [
        ("Q1", "P1", "Q2"),
        ("Q3", "P7", "Q8"),
        ("Q4", "P2", "Q1"),
        ("Q4", "P2", "Q2"),
    ]
    graph = KnowledgeGraph.open(tmp_path / "store")
    assert graph.relation_labels()[:3] == ["capital of", "flows through", "P7"]
    assert (report.entities, report.relations, report.triples, report.duplicate_triples) == (5, 3, 4, 1)
    assert report.read == {"attributes": 2, "entities": 5, "relations": 2, "triples": 5}
    assert report.noted == {
        "entities in no triple, left out": 1,
        "entities without a name": 1,
        "entities without a row of their own": 1,
    }
    assert (report.skipped, report.faults) == ({}, ())
    json.dumps(report.as_dict())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["published", "store"]


def test_a_folder_builds_into_the_same_store(published: Path, tmp_path: Path) -> None:
    direct = import_graph(Format((published,)), tmp_path / "store")
    folder = import_graph(Format((published,)), tmp_path / "folder", as_folder=True)
    assert (folder.fingerprint, folder.triples) == (None, 5)
    assert build(tmp_path / "folder", tmp_path / "second").fingerprint == direct.fingerprint
    with pytest.raises(DataError, match="something other than a graph store"):
        import_graph(Format((published,)), tmp_path / "folder", as_folder=True)


@pytest.mark.parametrize(
    ("choice", "label"),
    [("first", "Paris"), ("last", "Lutetia"), ("shortest", "Paris"), ("longest", "City of Light")],
)
def test_the_label_is_the_chosen_name(published: Path, tmp_path: Path, choice: Choice, label: str) -> None:
    import_graph(Format((published,), label=choice), tmp_path / "store")
    found = names(tmp_path / "store")["Q1"]
    assert found[0] == label
    assert {found[0], *found[1]} == {"Paris", "City of Light", "Lutetia"}


def test_options(published: Path, tmp_path: Path) -> None:
    importer = Format((published,), split="valid", description=0, keep_unlinked=True)
    report = import_graph(importer, tmp_path / "store")
    assert report.read == {"entities": 5, "relations": 2, "triples": 2}
    assert set(names(tmp_path / "store")) == {"Q1", "Q2", "Q3", "Q4", "Q9"}
    for wrong in ({"label": "best"}, {"split": "dev"}, {"description": -1}):
        with pytest.raises(DataError, match=next(iter(wrong))):
            Format((published,), **wrong)


def test_pictures_of_a_listing(published: Path, tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()
    Image.new("RGB", (9, 9), "red").save(files / "Eiffel_Tower.png")
    (files / "broken.png").write_bytes(b"no picture")
    listing = tmp_path / "p18.tsv"
    listing.write_text(
        "Q1\tEiffel Tower.png\nQ1\tabsent.jpg\nQ2\tbroken.png\nQ77\tEiffel_Tower.png\n"
        "Q2\t../files/broken.png\n"
    )
    importer = Format((published,), images=listing, pictures=files)
    with pytest.raises(DataError, match=r"p18\.tsv, line 5: picture path that is absolute or leads out"):
        import_graph(importer, tmp_path / "store")
    report = import_graph(importer, tmp_path / "store", on_error="skip")
    assert report.images == 1
    assert report.skipped == {
        "picture path that is absolute or leads out of its folder": 1,
        "picture that cannot be read": 1,
        "picture that does not exist": 1,
    }
    assert report.noted["images of entities outside the graph"] == 1
    graph = KnowledgeGraph.open(tmp_path / "store")
    assert graph.images_of(graph.entity_index("Q1"))[0][1] == "photo"


BAD = [
    ("wikidata5m_entity.txt", b"Q1\tagain\n", "repeated id in entities"),
    ("wikidata5m_relation.txt", b"P1\tagain\n", "repeated id in relations"),
    ("wikidata5m_relation.txt", b"~P1\tinverse\n", "begins with ~"),
    ("wikidata5m_entity.txt", b"Q5\tA\xffB\n", "not UTF-8"),
    ("more.txt", b"Q1\tP1\n", "wrong number of columns"),
    ("more.txt", b"Q1\tP1\tQ2\textra\n", "wrong number of columns"),
    ("more.txt", b"Q1\tP1\t\n", "empty object"),
    ("more.txt", b"Q1\tP1\tQ\xff\n", "not UTF-8"),
    ("more.txt", b"Q1\tP1\tQ\0\n", "NUL byte"),
    ("wikidata5m_text.txt", b"Q1\tbad \xc3\n", "not UTF-8"),
]


@pytest.mark.parametrize(("name", "line", "reason"), BAD)
def test_a_bad_line_stops_the_import_or_is_counted(
    tmp_path: Path, name: str, line: bytes, reason: str
) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "wikidata5m_entity.txt").write_text(ENTITIES)
    (folder / "wikidata5m_relation.txt").write_text(RELATIONS)
    (folder / "more.txt").write_text(TRIPLES["train"])
    (folder / "wikidata5m_text.txt").write_text(TEXT)
    clean = import_graph(Format((folder,)), tmp_path / "store").fingerprint
    with (folder / name).open("ab") as file:
        file.write(line)
    number = (folder / name).read_bytes().count(b"\n")
    with pytest.raises(DataError, match=f"{name}, line {number}: .*{reason}"):
        import_graph(Format((folder,)), tmp_path / "second")
    assert not (tmp_path / "second").exists()
    report = import_graph(Format((folder,)), tmp_path / "second", on_error="skip")
    assert sum(report.skipped.values()) == 1
    assert reason in report.faults[0]
    assert report.fingerprint == clean


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"\xef\xbb\xbf", b"\xff\xfeQ\x001\x00", b"{}\n", b"PK\x03\x04rest"]
)
def test_sources_without_triples_are_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "triples.txt").write_bytes(data)
    with pytest.raises(DataError, match=r"no triple was found|damaged"):
        import_graph(Format((tmp_path / "triples.txt",)), tmp_path / "store", on_error="skip")
    assert not (tmp_path / "store").exists()
    with pytest.raises(DataError, match="no such file or folder"):
        import_graph(Format((tmp_path / "absent",)), tmp_path / "store")


def large(folder: Path, triples: int = 40_000) -> Path:
    folder.mkdir()
    lines = (f"Q{i % 9973}\tP{i % 7}\tQ{i * 31 % 9967}\n" for i in range(triples))
    (folder / "triples.txt").write_text("".join(lines))
    (folder / "wikidata5m_entity.txt").write_text("".join(f"Q{i}\tname {i}\n" for i in range(9973)))
    return folder


RUN = """
import sys
from pathlib import Path
from vispath_lit.kg.importers.wikidata5m import Format
from vispath_lit.kg.staging import streams
from vispath_lit.kg.staging.importer import Batch
from vispath_lit.kg.staging.run import import_graph
streams.Member.blocks.__defaults__ = (20_000,)
import_graph(Format((Path(sys.argv[1]),)), sys.argv[2])
"""


def test_a_killed_import_goes_on_and_never_leaves_a_store(tmp_path: Path) -> None:
    """Killed again and again after ever more units; what there is never opens, and the end is the same."""
    source, target = large(tmp_path / "source"), tmp_path / "out" / "store"
    expected = import_graph(Format((source,)), tmp_path / "whole").fingerprint
    command = [sys.executable, "-c", RUN, str(source), str(target)]
    state, reached = target.parent / ".store.import" / "state.json", 0
    for goal in (3, 20):
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if state.exists() and (done := json.loads(state.read_text())["done"]) >= goal:
                assert done >= reached
                reached = done
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.002)
        process.wait()
        if process.returncode != 0:
            assert not is_store(target)
            with pytest.raises(DataError):
                KnowledgeGraph.open(target)
    assert reached >= 3
    subprocess.run(
        [sys.executable, "-c", RUN, str(source), str(target)], check=True, stderr=subprocess.DEVNULL
    )
    assert KnowledgeGraph.open(target).fingerprint == expected
    assert [entry.name for entry in target.parent.iterdir()] == ["store"]


def test_a_stopped_import_parses_no_unit_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = large(tmp_path / "source")
    blocks = stage_module.Stage._write
    written: list[str] = []

    def write(self: stage_module.Stage, name: str, shard: stage_module.Encoded) -> None:
        if len(written) == 1:
            written.append("stop")
            raise OSError(28, "No space left on device")
        written.append(name)
        blocks(self, name, shard)

    monkeypatch.setattr(stage_module.Stage, "_write", write)
    with pytest.raises(DataError, match=r"No space left.*as it was.*goes on where it stopped"):
        import_graph(Format((source,)), tmp_path / "store")
    assert not (tmp_path / "store").exists()
    report = import_graph(Format((source,)), tmp_path / "store")
    assert written.count("0000000-000") == 1
    assert report.read == {"entities": 9973, "triples": 40_000}


def test_another_source_or_option_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = large(tmp_path / "source", 2000)
    (source / "z.txt").write_text("broken\n")
    with pytest.raises(DataError, match=r"z\.txt, line 1"):
        import_graph(Format((source,)), tmp_path / "store")
    (source / "z.txt").write_text("Q1\tP1\tQnew\n")
    report = import_graph(Format((source,)), tmp_path / "store")
    assert report.read == {"entities": 9973, "triples": 2001}


LIMITED = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))\n" + RUN


def test_a_full_disk_leaves_the_old_store(tmp_path: Path) -> None:
    """A limit on file sizes stands for the full disk: every writer meets the same kind of refusal."""
    source, target = large(tmp_path / "source"), tmp_path / "out" / "store"
    assert resource.RLIMIT_FSIZE >= 0
    small = tmp_path / "small"
    small.mkdir()
    (small / "t.txt").write_text("Q1\tP1\tQ2\n")
    old = import_graph(Format((small,)), target).fingerprint
    run = subprocess.run(
        [sys.executable, "-c", LIMITED, str(source), str(target)], capture_output=True, text=True
    )
    assert run.returncode != 0
    assert "DataError" in run.stderr
    assert "as it was" in run.stderr
    assert KnowledgeGraph.open(target).fingerprint == old
    report = import_graph(Format((source,)), target)
    assert report.read == {"entities": 9973, "triples": 40_000}


def test_two_imports_into_one_place_do_not_meet(published: Path, tmp_path: Path) -> None:
    with (
        stage_module.Stage((tmp_path / "store").absolute(), "key", "fail"),
        pytest.raises(DataError, match="another import into it is running"),
    ):
        import_graph(Format((published,)), tmp_path / "store")


def test_a_place_that_is_not_ours_is_left_alone(published: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    with pytest.raises(DataError, match="holds something other than a graph store"):
        import_graph(Format((published,)), tmp_path / "mine")
    with pytest.raises(DataError, match="cannot take the place of its source"):
        import_graph(Format((published,)), published)
    assert (tmp_path / "mine" / "file").read_text() == "mine"
