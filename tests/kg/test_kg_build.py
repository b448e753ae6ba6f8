from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.store import KnowledgeGraph


def append(folder: Path, name: str, line: str | bytes) -> int:
    """Adds a line to a file of the folder and gives its number."""
    path = folder / f"{name}.tsv"
    data = path.read_bytes() + (line.encode() if isinstance(line, str) else line) + b"\n"
    path.write_bytes(data)
    return data.count(b"\n")


def png_header(width: int, height: int) -> bytes:
    """The first bytes of a picture that would be very large."""
    data = struct.pack(">II5B", width, height, 8, 2, 0, 0, 0)
    header = struct.pack(">I", len(data)) + b"IHDR" + data + struct.pack(">I", zlib.crc32(b"IHDR" + data))
    return b"\x89PNG\r\n\x1a\n" + header + struct.pack(">I", 1000) + b"IDAT" + b"x" * 8


def store(folder: Path) -> Path:
    return folder.parent / "out" / "store"


def test_the_report_counts(toy_folder: Path) -> None:
    report = build(toy_folder, store(toy_folder))
    assert (report.entities, report.relations, report.triples, report.images) == (12, 7, 30, 3)
    assert report.duplicate_triples == 1
    assert (report.skipped, report.faults, report.notices) == ({}, (), ())
    assert json.loads(json.dumps(report.as_dict()))["fingerprint"] == report.fingerprint
    assert [path.name for path in store(toy_folder).parent.iterdir()] == ["store"]


FAULTS = [
    ("entities", "fr\tFrance again\t\t\t", "id 'fr' was given before"),
    ("entities", "\tno id\t\t\t", "empty id"),
    ("entities", "x\t \t\t\t", "empty label"),
    ("entities", "x\tX", "found 2 columns, expected 5"),
    ("entities", "x\tX\\y\t\t\t", "label 'X\\\\\\\\y' has a backslash that begins no escape"),
    ("entities", "x\tX\ta\\z|b\t\t", "aliases .* has a backslash that begins no escape"),
    ("entities", b"x\tX\xff\t\t\t", "not valid UTF-8"),
    ("entities", "x\tX\0\t\t\t", "NUL byte"),
    ("relations", "borders\tb\t", "id 'borders' was given before"),
    ("relations", "~borders\tb\t", "begins with ~"),
    ("relations", "x\t\t", "empty label"),
    ("triples", "fr\tborders\tnowhere", "object 'nowhere' is not an id in entities.tsv"),
    ("triples", "nowhere\tborders\tfr", "subject 'nowhere' is not an id in entities.tsv"),
    ("triples", "fr\tnothing\tde", "relation 'nothing' is not an id in relations.tsv"),
    ("triples", "fr\t\tde", "relation '' is not an id"),
    ("triples", "fr\tborders", "found 2 columns, expected 3"),
    ("images", "nowhere\timages/fr.png\tflag", "entity 'nowhere' is not an id"),
    ("images", "fr\timages/absent.png\tflag", "'images/absent.png' does not exist"),
    ("images", "fr\t../outside.png\tflag", "stay inside it"),
    ("images", "fr\t/etc/hostname\tflag", "must be relative"),
    ("images", "fr\t\tflag", "must be relative"),
    ("images", "fr\timages\tflag", "does not exist"),
    ("images", "fr\timages/link.png\tflag", "leads out of the graph folder"),
    ("images", "fr\timages/broken.png\tflag", "not an image"),
    ("images", "fr\timages/large.png\tflag", "10000 x 10000 pixels are more than the limit of 64000000"),
    ("images", "fr\timages/huge.png\tflag", "too many pixels"),
]


@pytest.mark.parametrize(("name", "line", "reason"), FAULTS)
def test_a_bad_line_stops_the_build_or_is_left_out(
    toy_folder: Path, name: str, line: str | bytes, reason: str
) -> None:
    Image.new("RGB", (4, 4)).save(toy_folder.parent / "outside.png")
    (toy_folder / "images" / "link.png").symlink_to(toy_folder.parent / "outside.png")
    (toy_folder / "images" / "broken.png").write_bytes(b"\x89PNG but no more")
    (toy_folder / "images" / "huge.png").write_bytes(png_header(20_000, 20_000))
    (toy_folder / "images" / "large.png").write_bytes(png_header(10_000, 10_000))
    clean = build(toy_folder, store(toy_folder)).fingerprint
    number = append(toy_folder, name, line)
    with pytest.raises(DataError, match=f"{name}.tsv, line {number}: .*{reason}"):
        build(toy_folder, toy_folder.parent / "second")
    assert not (toy_folder.parent / "second").exists()
    report = build(toy_folder, store(toy_folder), on_error="skip")
    assert report.skipped == {f"{name}.tsv": 1}
    assert report.faults[0].startswith(f"{name}.tsv, line {number}: ")
    assert report.fingerprint == clean
    assert not [path for path in store(toy_folder).parent.iterdir() if path.name != "store"]


def test_the_first_bad_line_is_named_whatever_its_fault(toy_folder: Path) -> None:
    first = append(toy_folder, "entities", "x\t\t\t\t")
    append(toy_folder, "entities", "\tX\t\t\t")
    with pytest.raises(DataError, match=f"entities.tsv, line {first}: empty label"):
        build(toy_folder, store(toy_folder))


def test_many_faults_are_counted_in_full_and_listed_in_part(toy_folder: Path) -> None:
    with (toy_folder / "triples.tsv").open("a") as file:
        file.writelines(f"fr\tborders\tx{i}\n" for i in range(250))
        file.writelines("short\n" for _ in range(50))
    report = build(toy_folder, store(toy_folder), on_error="skip")
    assert report.skipped == {"triples.tsv": 300}
    assert len(report.faults) == 100
    assert report.triples == 30


def test_a_skipped_line_does_not_hide_a_good_one_with_its_id(toy_folder: Path) -> None:
    append(toy_folder, "entities", "x\t\t\t\t")
    append(toy_folder, "entities", "x\tGood\t\t\t")
    report = build(toy_folder, store(toy_folder), on_error="skip")
    assert report.skipped == {"entities.tsv": 1}
    graph = KnowledgeGraph.open(store(toy_folder))
    assert graph.label(graph.entity_index("x")) == "Good"


@pytest.mark.parametrize("name", ["entities", "relations", "triples"])
@pytest.mark.parametrize("mode", ["fail", "skip"])
def test_absent_and_empty_files(toy_folder: Path, name: str, mode: OnError) -> None:
    header = (toy_folder / f"{name}.tsv").read_text(encoding="utf8").splitlines()[0]
    (toy_folder / f"{name}.tsv").write_text(header + "\n")
    with pytest.raises(DataError, match=f"{name}.tsv: (no usable line|the graph is empty)"):
        build(toy_folder, store(toy_folder), mode)
    (toy_folder / f"{name}.tsv").unlink()
    with pytest.raises(
        DataError, match=f"{name}.tsv: no such file; expected a header line with the columns "
    ):
        build(toy_folder, store(toy_folder), mode)
    with pytest.raises(DataError, match="no such graph folder; expected one with entities"):
        build(toy_folder / "absent", store(toy_folder), mode)


def test_images_are_optional_and_unused_columns_are_noticed(toy_folder: Path) -> None:
    (toy_folder / "images.tsv").unlink()
    text = (toy_folder / "relations.tsv").read_text(encoding="utf8")
    lines = [f"{i}\t{line}" for i, line in enumerate(text.splitlines())]
    lines[0] = "note\t" + lines[0].split("\t", 1)[1]
    (toy_folder / "relations.tsv").write_text("\n".join(lines), encoding="utf8")
    report = build(toy_folder, store(toy_folder))
    assert report.images == 0
    assert report.notices == ("relations.tsv: column note is not used and was ignored",)
    graph = KnowledgeGraph.open(store(toy_folder))
    assert graph.images_of(0) == []
    assert (graph.image_files, graph.image_kinds, len(graph.image_entity)) == ([], [], 0)


def test_the_fingerprint_is_of_content_alone(toy_folder: Path) -> None:
    first = build(toy_folder, store(toy_folder)).fingerprint
    moved = toy_folder.parent / "elsewhere" / "moved"
    shutil.copytree(toy_folder, moved)
    header, *lines = (moved / "triples.tsv").read_text().splitlines()
    (moved / "triples.tsv").write_text("\r\n".join([header, *reversed(lines)]))
    (moved / "images" / "fr.png").rename(moved / "images" / "renamed.png")
    images = (moved / "images.tsv").read_text().replace("fr.png", "renamed.png")
    (moved / "images.tsv").write_text(images)
    assert build(moved, moved.parent / "store").fingerprint == first


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("entities", "Berlin\t", "Berlin\tB"),
        ("entities", "Rhein|Rhin", "Rhein"),
        ("entities", "A city state.", "A city state"),
        ("entities", "\triver", "\tstream"),
        ("relations", "capital of", "is capital of"),
        ("relations", "part of\t", "part of\thas part"),
        ("triples", "par\tpart_of\tfr\n", ""),
        ("triples", "ch\tlargest_city\tzur", "ch\tcapital\tzur"),
        ("images", "outline\n", "shape\n"),
        ("images", "fr\timages/outline.jpg", "ch\timages/outline.jpg"),
    ],
)
def test_any_change_of_content_changes_the_fingerprint(
    toy_folder: Path, name: str, old: str, new: str
) -> None:
    first = build(toy_folder, store(toy_folder)).fingerprint
    text = (toy_folder / f"{name}.tsv").read_text(encoding="utf8")
    assert text.count(old) == 1
    (toy_folder / f"{name}.tsv").write_text(text.replace(old, new), encoding="utf8")
    assert build(toy_folder, store(toy_folder)).fingerprint != first


def test_a_changed_picture_changes_the_fingerprint(toy_folder: Path) -> None:
    first = build(toy_folder, store(toy_folder)).fingerprint
    Image.new("RGB", (60, 40), "green").save(toy_folder / "images" / "fr.png")
    assert build(toy_folder, store(toy_folder)).fingerprint != first


def test_equal_folders_give_equal_bytes(toy_folder: Path) -> None:
    for out in ("a", "b"):
        build(toy_folder, toy_folder.parent / out)
    a, b = toy_folder.parent / "a", toy_folder.parent / "b"
    names = sorted(str(p.relative_to(a)) for p in a.rglob("*") if p.is_file())
    assert names == sorted(str(p.relative_to(b)) for p in b.rglob("*") if p.is_file())
    assert all((a / name).read_bytes() == (b / name).read_bytes() for name in names)


def test_a_store_is_replaced_whole_and_an_open_one_lives_on(toy_folder: Path) -> None:
    build(toy_folder, store(toy_folder))
    before = KnowledgeGraph.open(store(toy_folder))
    append(toy_folder, "triples", "lone\tpart_of\teu")
    build(toy_folder, store(toy_folder))
    assert KnowledgeGraph.open(store(toy_folder)).num_triples == 31
    assert len(before.out_tail) == 30
    assert before.out_tail.sum() > 0


def test_a_failed_build_leaves_the_old_store(toy_folder: Path) -> None:
    first = build(toy_folder, store(toy_folder)).fingerprint
    append(toy_folder, "triples", "bad")
    with pytest.raises(DataError):
        build(toy_folder, store(toy_folder))
    assert KnowledgeGraph.open(store(toy_folder)).fingerprint == first


def test_nothing_but_a_store_is_replaced(toy_folder: Path) -> None:
    other = toy_folder.parent / "precious"
    other.mkdir()
    (other / "thesis.txt").write_text("years of work")
    for target in (other, toy_folder, toy_folder.parent, other / "thesis.txt"):
        with pytest.raises(DataError):
            build(toy_folder, target)
    assert (other / "thesis.txt").read_text() == "years of work"
    assert (toy_folder / "triples.tsv").is_file()
    (other / "thesis.txt").unlink()
    build(toy_folder, other)  # An empty folder may become a store.


def test_an_unwritable_place_is_named(toy_folder: Path) -> None:
    (toy_folder.parent / "file").write_text("x")
    with pytest.raises(DataError, match=r"the store could not be built: .*nothing was changed"):
        build(toy_folder, toy_folder.parent / "file" / "store")


def test_on_error_has_two_values(toy_folder: Path) -> None:
    with pytest.raises(ConfigError, match="'fail' and 'skip'"):
        build(toy_folder, store(toy_folder), "ignore")  # type: ignore[arg-type]


def test_any_script_and_long_labels_survive(toy_folder: Path) -> None:
    names = ["日本国", "भारत", "العربية", "🇫🇷 flag", "x" * 10_000, "e\u0301", 'say "hi"', "a\\\\b\\tc\\nd"]
    for i, name in enumerate(names):
        append(toy_folder, "entities", f"n{i}\t{name}\t\t\t")
    build(toy_folder, store(toy_folder))
    graph = KnowledgeGraph.open(store(toy_folder))
    expected = [*names[:-1], "a\\b\tc\nd"]
    assert graph.labels(graph.entity_indices([f"n{i}" for i in range(len(names))])) == expected


def test_a_store_of_the_longest_name_is_replaced_too(toy_folder: Path) -> None:
    out = toy_folder.parent / ("s" * 255)
    first = build(toy_folder, out)
    assert build(toy_folder, out).fingerprint == first.fingerprint
    assert sorted(one.name for one in toy_folder.parent.iterdir()) == [out.name, "toy"]
