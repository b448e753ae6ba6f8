from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image

from vispath_lit.data.show import show
from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

TABLES = {
    "entities.tsv": "id\tlabel\ttype\na\tA <b>bold</b> land\tcountry\nb\tB & sons\tcity\n",
    "relations.tsv": "id\tlabel\nr\tthe <i>seat</i>\n",
    "triples.tsv": "subject\trelation\tobject\na\tr\tb\n",
    "images.tsv": "entity\tpath\tkind\n",
}


@pytest.fixture
def graph(tmp_path: Path) -> KnowledgeGraph:
    folder = tmp_path / "graph"
    folder.mkdir()
    for name, text in TABLES.items():
        (folder / name).write_text(text, encoding="utf-8")
    build(folder, tmp_path / "store")
    return KnowledgeGraph.open(tmp_path / "store")


def question(folder: Path, n: int) -> Question:
    image = folder / f"{n}.jpg"
    Image.new("RGB", (8, 8), (n, 0, 0)).save(image)
    return Question(
        id=f"<q{n}>", text="Where is <script>alert(1)</script>?", image=image,
        answers=("B & sons", '"quoted"'),
        answer_ids=("b",), topic_entity="a", gold_paths=((("r", "b"),),), hops=1, tags=("x<y",),
    )  # fmt: skip


def test_the_page_is_escaped_and_complete(graph: KnowledgeGraph, tmp_path: Path) -> None:
    page = tmp_path / "deep" / "page.html"
    show([question(tmp_path, 1)], graph, page)
    text = page.read_text(encoding="utf-8")
    assert "<script" not in text
    assert "<i>seat" not in text
    assert "<b>bold" not in text
    assert "<q1>" not in text
    assert "&lt;script&gt;" in text
    assert "the &lt;i&gt;seat" in text
    assert "B &amp; sons" in text
    assert "x&lt;y" in text
    assert not re.search(r'(?:src|href)="(?!data:image/jpeg;base64,)', text)
    assert list(page.parent.iterdir()) == [page]


def test_it_draws_n_of_them_by_seed(graph: KnowledgeGraph, tmp_path: Path) -> None:
    questions = [question(tmp_path, n) for n in range(20)]
    pages = []
    for seed in (0, 0, 1):
        show(questions, graph, tmp_path / "page.html", n=5, seed=seed)
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1] != pages[2]
    assert pages[0].count("<article>") == 5
    show(questions, graph, tmp_path / "page.html", n=50)
    assert (tmp_path / "page.html").read_text(encoding="utf-8").count("<article>") == 20


def test_walking_backwards_and_no_picture(graph: KnowledgeGraph, tmp_path: Path) -> None:
    backwards = Question(id="q", text="Whose?", topic_entity="b", gold_paths=((("~r", "a"),),))
    show([backwards], graph, tmp_path / "page.html")
    text = tmp_path.joinpath("page.html").read_text(encoding="utf-8")
    assert "inverse of the &lt;i&gt;seat" in text
    assert "no picture" in text
    assert "none given" in text


def test_what_cannot_be_shown_is_refused(graph: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="at least 1"):
        show([], graph, tmp_path / "page.html")
    with pytest.raises(DataError, match=r"gone\.jpg"):
        show([Question(id="q", text="?", image=tmp_path / "gone.jpg")], graph, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_file_that_is_no_picture_stays_off_the_page(graph: KnowledgeGraph, tmp_path: Path) -> None:
    secret = tmp_path / "secret.jpg"
    secret.write_text("a private key")
    with pytest.raises(DataError, match=r"secret\.jpg: not an image"):
        show([Question(id="q", text="?", image=secret)], graph, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_place_that_cannot_be_written_is_left_as_it_was(graph: KnowledgeGraph, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    (taken / "page.html").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        show([Question(id="q", text="?")], graph, taken / "page.html")
    assert [path.name for path in taken.iterdir()] == ["page.html"]
