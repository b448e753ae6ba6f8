from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.data.questions import read_questions, write_questions
from vispath_lit.errors import DataError
from vispath_lit.types import Question

TEXT = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8
).filter(str.strip)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
FIELDS = (
    "id",
    "question",
    "image",
    "answers",
    "answer_ids",
    "topic_entity",
    "gold_paths",
    "hops",
    "split",
    "tags",
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
QUESTIONS = st.builds(
    Question,
    id=TEXT,
    text=TEXT,
    answers=TEXTS,
    answer_ids=TEXTS,
    topic_entity=st.none() | TEXT,
    gold_paths=st.lists(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=3).map(tuple), max_size=2).map(
        tuple
    ),
    hops=st.none() | st.integers(1, 9),
    split=st.none() | TEXT,
    tags=TEXTS,
    meta=st.dictionaries(TEXT.filter(lambda key: key not in FIELDS), JSON, max_size=2),
)


def line(**fields: object) -> str:
    return json.dumps({"id": "q", "question": "Which?", **fields}) + "\n"


@settings(max_examples=60)
@given(questions=st.lists(QUESTIONS, min_size=1, max_size=4, unique_by=lambda question: question.id))
def test_written_questions_come_back(
    tmp_path_factory: pytest.TempPathFactory, questions: list[Question]
) -> None:
    path = tmp_path_factory.mktemp("q") / "deep" / "a.jsonl"
    write_questions(path, questions)
    assert read_questions(path) == questions
    assert [p.name for p in path.parent.iterdir()] == ["a.jsonl"]


def test_a_full_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        "\ufeff"
        + line(
            image="images/a.jpg",
            answers=["Paris", "City of Light"],
            answer_ids=["par"],
            topic_entity="eur",
            gold_paths=[[["~currency", "fr"], ["capital", "par"]]],
            hops=2,
            split="val",
            tags=["cue"],
            source={"url": 1},
        )
        + "\n  \r\n"
        + line(id="bare", image=None, answers=None, hops=None),
        encoding="utf8",
    )
    full, bare = read_questions(str(path))
    assert full == Question(
        id="q",
        text="Which?",
        image=tmp_path / "images" / "a.jpg",
        answers=("Paris", "City of Light"),
        answer_ids=("par",),
        topic_entity="eur",
        gold_paths=((("~currency", "fr"), ("capital", "par")),),
        hops=2,
        split="val",
        tags=("cue",),
        meta={"source": {"url": 1}},
    )
    assert bare == Question(id="bare", text="Which?")
    assert read_questions(path, limit=1) == [full]


BAD = [
    ({"id": 3}, "field id: found a number (3), expected a string"),
    ({"id": " "}, "field id: found an empty string"),
    ({"question": ""}, "field question: found an empty string"),
    ({"question": None}, "field question: found a null"),
    ({"question": "a\0b"}, "field question: found a NUL"),
    ({"image": 3}, "field image: found a number"),
    ({"image": ""}, "field image: found an empty string"),
    ({"answers": "Paris"}, "field answers: found a string, expected a list of strings"),
    ({"answers": ["Paris", 3]}, "field answers: found a number (3), expected a string"),
    ({"answers": {}}, "field answers: found a object"),
    ({"answer_ids": [None]}, "field answer_ids: found a null"),
    ({"topic_entity": ["fr"]}, "field topic_entity: found a list"),
    ({"gold_paths": [["capital", "par"]]}, "field gold_paths: found the step 'capital', expected [relation"),
    ({"gold_paths": [[["capital"]]]}, "field gold_paths: found the step ['capital']"),
    ({"gold_paths": [[]]}, "field gold_paths: found an empty path"),
    ({"gold_paths": [[[1, "par"]]]}, "field gold_paths: found a number"),
    ({"gold_paths": "x"}, "field gold_paths: found a string"),
    ({"hops": 0}, "field hops: found 0, expected a whole number of at least 1"),
    ({"hops": True}, "field hops: found True"),
    ({"hops": 2.0}, "field hops: found 2.0"),
    ({"hops": "2"}, "field hops: found '2'"),
    ({"tags": [["x"]]}, "field tags: found a list"),
    ({"id": "first"}, "field id: 'first' was used in line 1; ids are unique"),
]


@pytest.mark.parametrize(("fields", "reason"), BAD)
def test_bad_values_are_named(tmp_path: Path, fields: dict[str, object], reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line(id="first") + "\n" + line(**fields), encoding="utf8")
    with pytest.raises(DataError) as error:
        read_questions(path)
    assert f"a.jsonl, line 3, {reason}" in str(error.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "not valid JSON"),
        (b'{"id": "q", "question": "x", "score": NaN}', "NaN is not a JSON number"),
        (b'{"id": "q", "question": "x", "score": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"id": "q", "question": "x", "score": 1e999}', "1e999 is too large"),
        (b'{"id": "q", "question": "x", "id": "r"}', "field 'id' appears twice"),
        (b'{"id": "q", "question": "\\ud800"}', "not valid JSON in UTF-8"),
        (b'{"id": "q", "question": "\xff"}', "not valid JSON in UTF-8"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b'["q", "x"]', "found a JSON list, expected an object with id and question"),
        (b"null", "found a JSON null"),
        (b'{"question": "x"}', "field id: missing"),
        (b'{"id": "q"}', "field question: missing"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line(id="first").encode() + text + b"\n")
    with pytest.raises(DataError, match=r"a\.jsonl, line 2") as error:
        read_questions(path)
    assert reason in str(error.value)


def test_absent_empty_and_endless_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    with pytest.raises(DataError, match="no such question file"):
        read_questions(path)
    path.write_text("\n\n")
    with pytest.raises(DataError, match="no question in the file"):
        read_questions(path)
    monkeypatch.setattr("vispath_lit.data.questions.MAX_LINE", 100)
    path.write_text(line() + " " * 101 + "\n")
    with pytest.raises(DataError, match="line 2: longer than 100 bytes"):
        read_questions(path)


def test_many_fields_of_one_name_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    pairs = [*(f'"field {i}": 1' for i in range(20_000)), '"field 19999": 2']
    path.write_text("{" + ", ".join(pairs) + "}\n", encoding="utf8")
    begin = time.process_time()
    with pytest.raises(DataError, match="field 'field 19999' appears twice"):
        read_questions(path)
    assert time.process_time() - begin < 2  # a comparison of all with all takes 20 times as long


def test_an_image_whose_name_no_disk_can_hold_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(line(image="x" * 300), encoding="utf8")
    with pytest.raises(DataError, match=r"line 1, field image: .*does not exist"):
        read_questions(path, check_images=True)


def test_images_may_be_checked_and_may_be_absolute(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "q" / "a.jsonl", tmp_path / "b.png"
    elsewhere.write_bytes(b"x")
    questions = [
        Question("1", "?", image=elsewhere),
        Question("2", "?", image=tmp_path / "q" / "images" / "c.png"),
    ]
    write_questions(path, questions)
    written = [json.loads(text)["image"] for text in path.read_text().splitlines()]
    assert written == [str(elsewhere), "images/c.png"]
    assert read_questions(path) == questions
    with pytest.raises(DataError, match=r"line 2, field image: .*c.png does not exist"):
        read_questions(path, check_images=True)
    assert read_questions(path, check_images=True, limit=1) == questions[:1]


@pytest.mark.parametrize(
    "questions",
    [
        [Question("1", "?"), Question("1", "!")],
        [Question("1", "?", meta={"answers": ["x"]})],
        [Question("1", "?", meta={"score": float("nan")})],
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path: Path, questions: list[Question]) -> None:
    path = tmp_path / "a.jsonl"
    write_questions(path, [Question("old", "?")])
    with pytest.raises((DataError, ValueError)):
        write_questions(path, questions)
    assert [question.id for question in read_questions(path)] == ["old"]
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]
