"""Published question files over another graph: generated miniatures, what is placed, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from evaluation_world import TrigramEncoder

from vispath_lit.data.regrounding import Mention, Raw, Regrounder
from vispath_lit.data.sources.evqa import EVQA
from vispath_lit.data.sources.grounded import GroundedSource
from vispath_lit.data.sources.infoseek import InfoSeek
from vispath_lit.data.sources.mapped import Mapped
from vispath_lit.data.sources.records import find_image, read_rows
from vispath_lit.data.sources.vispath_bench import VisPathBench
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.images import is_there
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

COLUMNS = ["question", "answer", "dataset_image_ids", "dataset_name", "question_type", "wikipedia_url"]
COLUMNS += ["wikipedia_title", "encyclopedic_vqa_split"]
WIKI = "https://en.wikipedia.org/wiki/"
EVQA_ROWS: list[tuple[str, ...]] = [
    ("What is its capital?", "Paris|City of Light", "12|13", "inat", "templated", f"{WIKI}France", "France"),
    (
        "Which borders,\nhas it?",
        "Germany&&Monaco|Germany",
        "77",
        "inat",
        "multi_answer",
        f"{WIKI}fr",
        "France",
    ),
    ("And the river's?", "Nowhere", "", "inat", "2_hop", f"{WIKI}Z%C3%BCrich|{WIKI}Rhine", "Zürich|Rhine"),
]


def write_lines(file: Path, records: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf8")


def write_evqa(file: Path, rows: list[tuple[str, ...]] = EVQA_ROWS) -> None:
    with file.open("w", encoding="utf-8-sig", newline="") as out:
        writer = csv.writer(out)
        writer.writerows([COLUMNS, *((*row, "test") for row in rows)])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / "published"
    (made / "pictures" / "inat").mkdir(parents=True)
    (made / "pictures" / "inat" / "12.jpg").write_bytes(b"picture")
    return made


def source(kind: type[GroundedSource], graph: KnowledgeGraph, place: Path, **values: Any) -> GroundedSource:
    return kind(str(graph.path), str(place), place.parent / "cache", **values)


def report(place: Path, split: str = "test") -> dict[str, Any]:
    (file,) = (place.parent / "cache" / "regrounding").glob(f"*/{split}.json")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf8"))
    return found


def test_evqa_alternatives_lists_and_two_pages(toy_graph: KnowledgeGraph, place: Path) -> None:
    write_evqa(place / "test.csv")
    one, two, three = source(
        EVQA, toy_graph, place, test="test.csv", images=str(place / "pictures")
    ).questions("test")
    assert (one.topic_entity, one.answers) == ("fr", ("Paris", "City of Light"))
    assert one.answer_ids == ("par", "pt"), "both are called Paris, and one is the City of Light"
    assert one.image == (place / "pictures" / "inat" / "12.jpg").resolve()
    assert one.meta["scoring"] == {"kind": "exact"}
    assert (two.text, two.topic_entity, two.answer_ids) == ("Which borders,\nhas it?", "fr", ("de", "mc"))
    assert two.meta["scoring"] == {"kind": "list", "lists": [["Germany", "Monaco"], ["Germany"]]}
    assert two.image is not None
    assert not two.image.exists()
    assert (three.topic_entity, three.hops, three.image) == ("zur", 2, None)
    assert three.answer_ids == ("Nowhere",), "kept, so that the question counts as a miss"
    assert report(place)["answers"] == {"lost": 1, "name": 3}
    assert report(place)["without_any_answer"] == [three.id]
    assert report(place)["not_placed"][0]["names"] == ["Nowhere"]


INFOSEEK: list[dict[str, Any]] = [
    {"data_id": "a", "image_id": "oven_1", "question": "Capital?", "answer": ["Paris"], "answer_eval":
    ["Paris"],
     "data_split": "val_unseen_entity"},
    {"data_id": "b", "image_id": "oven_2", "question": "How long?", "answer": ["1"], "data_split":
    "val_unseen_question",
     "answer_eval": [{"wikidata": 1.0, "range": [0.9, 1.1]}]},
]  # fmt: skip


def test_infoseek_with_and_without_its_entities(toy_graph: KnowledgeGraph, place: Path) -> None:
    write_lines(place / "val.jsonl", INFOSEEK)
    without = source(InfoSeek, toy_graph, place, test="val.jsonl").questions("test")
    assert [one.topic_entity for one in without] == [None, None]
    write_lines(place / "val_withkb.jsonl", [{"data_id": "a", "entity_id": "Q142", "entity_text": "France"}])
    write_lines(place / "val_qtype.jsonl", [{"data_id": "b", "question_type": "Numerical"}])
    first, second = source(InfoSeek, toy_graph, place, test="val.jsonl").questions("test")
    assert (first.topic_entity, first.answer_ids, first.tags) == ("fr", ("par", "pt"), ("unseen_entity",))
    assert (second.answer_ids, second.tags) == ((), ("unseen_question", "type:numerical"))
    assert second.meta["scoring"] == {"kind": "range", "ranges": [[0.9, 1.1]]}


def test_two_questions_of_one_id_are_both_named(toy_graph: KnowledgeGraph, place: Path) -> None:
    write_lines(place / "val.jsonl", [*INFOSEEK, INFOSEEK[0]])
    with pytest.raises(
        DataError, match=r"val\.jsonl: question 3 has the id 'a' of question 1; ids are unique"
    ):
        source(InfoSeek, toy_graph, place, test="val.jsonl").questions("test")


def test_a_number_without_a_range_has_a_tolerance(toy_graph: KnowledgeGraph, place: Path) -> None:
    write_lines(place / "val.jsonl", [INFOSEEK[1] | {"answer_eval": [{"wikidata": -10}]}])
    (one,) = source(InfoSeek, toy_graph, place, test="val.jsonl").questions("test")
    assert one.meta["scoring"] == {"kind": "range", "ranges": [[pytest.approx(-11), pytest.approx(-9)]]}


FIELDS = {"question": "q", "answers": "a.text", "answer_ids": "a.id", "topic_name": "about"}
FIELDS |= {"split": "part", "hops": "n"}
MAPPED = {
    "data": [
        {"q": "Capital?", "a": [{"text": "Paris", "id": "par"}], "about": "france", "part": "dev", "n": 1},
        {"q": "Neighbours?", "a": [{"text": "Germany", "id": "de"}, {"text": "Nowhere", "id": "x"}], "part":
        "test", "n": "2"},
    ]
}  # fmt: skip


def test_mapped_fields_and_splits_of_one_file(toy_graph: KnowledgeGraph, place: Path) -> None:
    (place / "all.json").write_text(json.dumps(MAPPED), encoding="utf8")
    made = source(
        Mapped,
        toy_graph,
        place,
        val="all.json",
        test="all.json",
        fields=FIELDS,
        list_at="data",
        title="mmhops",
    )
    (first,), (second,) = made.questions("val"), made.questions("test")
    assert made.name == "mmhops"
    assert (first.topic_entity, first.answer_ids, first.hops) == ("fr", ("par",), 1)
    assert first.answers == ("Paris",)
    assert (second.topic_entity, second.answer_ids, second.hops) == (None, ("de", "x"), 2)
    assert made.questions("train") == []


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"question": "q"}, ConfigError, r"data\.fields\.answers is not set"),
        ({"question": "q", "answers": "a", "hop": "n"}, ConfigError, "hop"),
        (
            {"question": "text", "answers": "a.text"},
            DataError,
            r"no field 'text'.*data\.fields\.question=FIELD",
        ),
        ({"question": "q", "answers": "a"}, DataError, "expected a text"),
        ({"question": "q", "answers": "q", "hops": "q"}, DataError, "whole number"),
    ],
)
def test_a_wrong_mapping_is_told(
    toy_graph: KnowledgeGraph, place: Path, fields: dict[str, str], error: type[Exception], said: str
) -> None:
    (place / "all.json").write_text(json.dumps(MAPPED), encoding="utf8")
    with pytest.raises(error, match=said):
        source(Mapped, toy_graph, place, test="all.json", fields=fields, list_at="data").questions("test")


def test_the_bench_keeps_walkable_gold_in_training_and_all_of_it_elsewhere(
    toy_graph: KnowledgeGraph, place: Path
) -> None:
    bad: dict[str, Any] = {"id": "b", "question": "?", "answers": ["Berlin"], "topic_entity": "Q183"}
    bad |= {"topic_label": "Germany", "gold_paths": [[["capital", "zur"]]]}
    good: dict[str, Any] = {"id": "g", "question": "?", "answer_ids": ["par"], "topic_entity": "fr"}
    good |= {"gold_paths": [[["capital", "par"]]]}
    for name in ("train", "val", "test"):
        write_lines(place / f"{name}.jsonl", [bad, good])
    files = {split: f"{split}.jsonl" for split in ("train", "val", "test")}
    made = source(VisPathBench, toy_graph, place, **files)
    train, test = made.questions("train"), made.questions("test")
    assert [len(one.gold_paths) for one in train] == [0, 1]
    assert [len(one.gold_paths) for one in test] == [1, 1]
    assert [(one.topic_entity, one.answer_ids) for one in train] == [("de", ("ber",)), ("fr", ("par",))]
    assert report(place)["questions_whose_gold_paths_the_graph_lacks"] == 1
    found = supervise(toy_graph, train)
    assert (found.report.weak, found.report.gold) == (1, 1)


def test_without_a_val_file_a_tenth_of_the_topics_is_val(toy_graph: KnowledgeGraph, place: Path) -> None:
    topics = ["fr", "de", "ch", "mc"]
    one = {"question": "?", "answers": ["x"]}
    rows = [one | {"id": f"{t}{i}", "topic_entity": t} for t in topics for i in range(3)]
    write_lines(place / "train.jsonl", rows)
    made = source(VisPathBench, toy_graph, place, train="train.jsonl")
    train, val = made.questions("train"), made.questions("val")
    assert (len(train), len(val)) == (9, 3)
    assert not {one.topic_entity for one in train} & {one.topic_entity for one in val}
    again = source(VisPathBench, toy_graph, place, train="train.jsonl").questions("val")
    assert [one.id for one in again] == [one.id for one in val]


def test_id_then_name_then_embedding_above_the_threshold(toy_graph: KnowledgeGraph) -> None:
    mentions = [
        Mention(("de",), ("France",)),
        Mention(("Q1",), ("DEUTSCHLAND",)),
        Mention(names=("Switzerlands",)),
        Mention(names=("Quux",)),
        Mention(names=("1234",)),
        Mention(("page",)),
    ]
    links = {"page": "eur"}
    found = Regrounder(toy_graph, TrigramEncoder(), 0.8, None, links).place(mentions)
    ids = [[toy_graph.entity_id(entity) for entity in found[one][0]] for one in mentions]
    assert ids == [["de"], ["de"], ["ch"], [], [], ["eur"]]
    assert [found[one][1] for one in mentions] == ["id", "name", "embedding", "lost", "lost", "id"]
    assert 0.8 <= found[mentions[2]][2] < 1
    strict = Regrounder(toy_graph, TrigramEncoder(), 0.999).place(mentions)
    assert strict[mentions[2]][1] == "lost"
    assert Regrounder(toy_graph).place(mentions)[mentions[2]][1] == "lost"
    with pytest.raises(ConfigError, match="threshold is 0"):
        Regrounder(toy_graph, threshold=0)


def test_no_question_is_dropped_and_counts_add_up(toy_graph: KnowledgeGraph) -> None:
    raws = [
        Raw(Question(str(i), "?", answers=(name,)), Mention(names=(topic,)) if topic else None,
        (Mention(names=(name,)),)) for i, (topic, name) in enumerate([("France", "Paris"), ("", "Nowhere"),
        ("Nowhere", "Rhein"), ("é", "\ud83d")])
    ]  # fmt: skip
    questions, made = Regrounder(toy_graph).questions(raws, training=False)
    assert [one.id for one in questions] == ["0", "1", "2", "3"]
    assert made.topics.total() == 3
    assert made.answers.total() == 4
    assert all(one.answer_ids for one in questions)
    assert made.without_answer == ["1", "3"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "", "line 1"),
        ("a.csv", "a,a\n1,2\n", "distinct"),
        ("a.csv", "question,answer\n1,2,3\n", "line 2: 3 fields under 2"),
        ("a.csv", 'question,answer\n"1,2\n', "no CSV"),
        ("a.csv", "question,answer\nwhy,\n", "field answer"),
        ("a.csv", "question,answer\n,x\n", "field question"),
        ("a.csv", "question,answer\nwhy,&&|&&\n", "separators"),
        ("a.csv", "question\0,answer\n", "NUL"),
        ("a.csv", "question,answer,wikipedia_url\nwhy,x,http://[y\n", "line 2, field wikipedia_url: "),
        ("a.jsonl", "[]\n", "line 1"),
        ("a.jsonl", "{\n", "line 1"),
        ("a.jsonl", '{"question": "q", "answer": NaN}\n', "NaN"),
        ("a.jsonl", '{"question": "q", "answer": {"x": 1}}\n', "expected a text"),
        ("a.jsonl", "[" * 100_000 + "\n", "not valid JSON"),
        ("a.jsonl", "\n\n", "no question"),
        ("a.json", '{"a": 1}', "expected an object"),
        ("a.json", "3", r"data\.list_at"),
    ],
)
def test_a_bad_file_is_named(toy_graph: KnowledgeGraph, place: Path, name: str, text: str, said: str) -> None:
    (place / name).write_text(text, encoding="utf8")
    with pytest.raises(DataError, match=said) as caught:
        source(EVQA, toy_graph, place, test=name).questions("test")
    assert name in str(caught.value)


def test_bytes_that_are_no_text_and_missing_files_are_named(toy_graph: KnowledgeGraph, place: Path) -> None:
    (place / "a.csv").write_bytes(b"question,answer\n\xff,x\n")
    with pytest.raises(DataError, match="line 2: not UTF-8"):
        list(read_rows(place / "a.csv"))
    with pytest.raises(DataError, match="no such file"):
        source(EVQA, toy_graph, place, test="none.csv").questions("test")
    with pytest.raises(ConfigError, match=r"data\.folder is not set"):
        EVQA(str(toy_graph.path), "", place)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1234567.0, "1234567"),
        (12345678.0, "12345678"),
        (1234567.5, "1234567.5"),
        (0.25, "0.25"),
        (-3.0, "-3"),
        (1e300, "1e+300"),
        (10**30, str(10**30)),
    ],
)
def test_a_number_keeps_all_its_digits(place: Path, number: float, text: str) -> None:
    write_lines(place / "a.jsonl", [{"answer": number, "list": [number]}])
    (row,) = read_rows(place / "a.jsonl")
    assert row.text("answer") == text
    assert row.texts("list") == (text,)


def linked(graph: KnowledgeGraph, place: Path, links: bytes) -> list[Question]:
    (place / "links.tsv").write_bytes(links)
    write_evqa(place / "test.csv", [("Which?", "x", "", "inat", "templated", f"{WIKI}Q1", "Page\u2028of it")])
    return source(EVQA, graph, place, test="test.csv", links=str(place / "links.tsv")).questions("test")


def test_links_are_split_at_line_ends_and_at_nothing_else(toy_graph: KnowledgeGraph, place: Path) -> None:
    lines = f"\ufeffa\u0085b\tde\r\n\r\n{WIKI}Q1\tfr\r\nPage\u2028of it\tch\n{WIKI}Q1\tfr"
    (question,) = linked(toy_graph, place, lines.encode())
    assert question.topic_entity == "fr"


@pytest.mark.parametrize(
    ("links", "said"),
    [
        (b"a\tfr\n\xff\tde\n", "line 2: not UTF-8"),
        (b"a\tfr\nb\n", "line 2: found"),
        (b"a\tfr\nb\tfr\na\tde\n", "line 3: 'a' is 'de' here and 'fr' before"),
        (b"a" * (1 << 20) + b"\tfr\n", "line 1: longer than"),
    ],
)
def test_a_bad_link_is_named(toy_graph: KnowledgeGraph, place: Path, links: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        linked(toy_graph, place, links)
    assert "links.tsv" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../secret.jpg", "/etc/passwd", "", "a" * 300, "é" * 200, "a/" * 127 + "a", "x/../../secret"]
)
def test_a_picture_lies_inside_its_folder(place: Path, name: str) -> None:
    (place / "secret.jpg").write_bytes(b"secret")
    assert not is_there(find_image(place / "pictures", name))


def test_pictures_are_found_with_and_without_suffix_and_by_their_first_signs(place: Path) -> None:
    root = place / "pictures"
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "b" / "c" / "abcdef.jpg").write_bytes(b"picture")
    assert find_image(root, "abcdef", "landmarks").is_file()
    assert find_image(root, "12", "inat").is_file()
    assert find_image(root, "inat/12.jpg").is_file()
    assert find_image(root, "13", "inat") == root / "inat" / "13"
