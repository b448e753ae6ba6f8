"""The report: complete, self-contained, and unmoved by hostile labels."""

from __future__ import annotations

import base64
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import TrigramEncoder, WordWalker, toy_questions
from PIL import Image

from vispath_lit.evaluation.comparison import assemble
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.records import Record, Walk
from vispath_lit.evaluation.report import sample, where_lost, write_report
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

HOSTILE = '<script>alert("x")</script><img src=x onerror=alert(1)>'
VOID = {"meta", "img", "br", "link"}


class Page(HTMLParser):
    """Collects tags, attributes and text; complains about a tag that closes another."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


@pytest.fixture
def questions(toy_folder: Path) -> list[Question]:
    return toy_questions(toy_folder)


@pytest.fixture
def both(toy_graph: KnowledgeGraph, questions: list[Question]) -> tuple[Evaluation, Evaluation]:
    encoder = TrigramEncoder()
    return (
        evaluate(WordWalker(toy_graph), questions, toy_graph, encoder),
        evaluate(WordWalker(toy_graph, "weaker", inverse=False), questions, toy_graph, encoder),
    )


def metrics(both: tuple[Evaluation, Evaluation]) -> dict[str, Any]:
    return dict(
        assemble(
            {"given_nothing": both[0], "given_start": both[0]},
            data="toy",
            split="test",
            fingerprints={"graph": "abc123"},
            fixed={"given_nothing": both[1], "given_start": both[1]},
        )
    )


def test_the_page_holds_what_is_promised(
    both: tuple[Evaluation, Evaluation], questions: list[Question], tmp_path: Path
) -> None:
    found, file = metrics(both), tmp_path / "report.html"
    write_report(file, found, both[0].records, questions, fixed=both[1].records)
    html = file.read_text(encoding="utf8")
    page = Page(html)
    text = " ".join(" ".join(page.words).split())
    for question in questions:
        assert question.text in text
    assert text.count("gold path: ") == 14  # 7 questions with gold paths, two systems
    assert "crossed by" in text
    assert "abc123" in text
    assert "start given" in text
    assert page.tags.count("svg") == 5  # two bar charts, one reliability diagram, two bars of lost gold
    assert f"{100 * found['overall']['hits@1']:.1f}" in text
    assert f"{100 * found['fixed']['overall']['hits@1']:.1f}" in text
    assert "gained: right, fixed wrong" in text


def test_the_page_reaches_for_nothing_outside(
    both: tuple[Evaluation, Evaluation], questions: list[Question], tmp_path: Path
) -> None:
    file = tmp_path / "report.html"
    write_report(file, metrics(both), both[0].records, questions, fixed=both[1].records)
    page = Page(file.read_text(encoding="utf8"))
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert ("content", "default-src 'none'; img-src data:; style-src 'unsafe-inline'") in page.attributes
    sources = [value for name, value in page.attributes if name in ("src", "href")]
    assert len(sources) == 1
    head, _, code = sources[0].partition(",")
    assert head == "data:image/jpeg;base64"
    assert Image.open(io.BytesIO(base64.b64decode(code))).size == (60, 40)
    assert "://" not in file.read_text(encoding="utf8")
    assert str(tmp_path) not in file.read_text(encoding="utf8")


def hostile(record: Record) -> Record:
    """The same record with markup for every text of it."""

    def walk(path: Walk) -> Walk:
        return replace(
            path,
            entity_labels=(HOSTILE,) * len(path.entities),
            relation_labels=(HOSTILE,) * len(path.relations),
            entities=tuple(f"{HOSTILE}{i}" for i in range(len(path.entities))),
        )

    return replace(
        record,
        question=HOSTILE,
        answer=HOSTILE,
        statement=HOSTILE,
        path=None if record.path is None else walk(record.path),
        others=tuple(walk(path) for path in record.others),
        candidates=tuple(replace(c, label=HOSTILE, origin=HOSTILE) for c in record.candidates),
        trace=tuple(
            replace(hop, intent=HOSTILE, kept=tuple(walk(path) for path in hop.kept)) for hop in record.trace
        ),
        gold=replace(
            record.gold, answers=(HOSTILE,), tags=(HOSTILE,), paths=tuple(map(walk, record.gold.paths))
        ),
    )


def test_hostile_text_stays_text(
    both: tuple[Evaluation, Evaluation], questions: list[Question], tmp_path: Path
) -> None:
    bad = tuple(replace(one, system=HOSTILE, records=tuple(map(hostile, one.records))) for one in both)
    found = metrics((bad[0], bad[1])) | {
        "data": HOSTILE,
        "split": HOSTILE,
        "fingerprints": {HOSTILE: HOSTILE},
    }
    file = tmp_path / "report.html"
    write_report(file, found, bad[0].records, questions, fixed=bad[1].records)
    html = file.read_text(encoding="utf8")
    page = Page(html)
    assert "script" not in page.tags
    assert page.tags.count("img") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not re.search(r"<script|<img src=x", html)
    assert any(HOSTILE[:8] in words for words in page.words)


def test_a_picture_that_cannot_be_read_is_said(
    both: tuple[Evaluation, Evaluation], questions: list[Question], tmp_path: Path, toy_folder: Path
) -> None:
    (toy_folder / "images" / "fr.png").write_bytes(b"<svg onload=alert(1)>")
    file = tmp_path / "report.html"
    write_report(file, metrics(both), both[0].records, questions)
    page = Page(file.read_text(encoding="utf8"))
    assert "img" not in page.tags
    assert "the picture could not be read" in " ".join(page.words)


def test_a_system_alone_has_a_page(
    both: tuple[Evaluation, Evaluation], questions: list[Question], tmp_path: Path
) -> None:
    alone = dict(assemble({"given_nothing": both[0]}, data="toy", split="test", fingerprints={}))
    file = tmp_path / "report.html"
    write_report(file, alone, both[0].records, questions, shown=4)
    page = Page(file.read_text(encoding="utf8"))
    assert page.tags.count("article") == 4
    assert page.tags.count("svg") == 4
    assert "trained" not in " ".join(page.words).split("By number of hops")[1].split("questions")[0]


def test_the_sample_is_seeded_and_from_every_group(both: tuple[Evaluation, Evaluation]) -> None:
    other = {record.id: record for record in both[1].records}
    kinds = {record.id: (bool(record.correct), bool(other[record.id].correct)) for record in both[0].records}
    drawn = sample(both[0].records, other, shown=3, seed=1)
    assert len(drawn) == 3
    assert len({kinds[record.id] for record in drawn}) == 3  # gained, both right, both wrong; none is lost
    assert drawn == sample(both[0].records, other, shown=3, seed=1)
    assert len({tuple(r.id for r in sample(both[0].records, other, shown=4, seed=s)) for s in range(8)}) > 1
    assert {record.id for record in sample(both[0].records, other)} == set(kinds)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (None, ""),
        ("start", "start entity was not found"),
        ("chains@3", "hop 3 by the chain score"),
        ("stopped@2", "after hop 2"),
        ("kept", "kept to its end"),
    ],
)
def test_places_in_words(place: str | None, words: str) -> None:
    assert words in where_lost(place)
