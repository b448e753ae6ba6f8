"""Where questions come from: a split is the same every time, and no start is on both sides of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vispath_lit.data.questions import write_questions
from vispath_lit.data.sources import atlas
from vispath_lit.data.sources.atlas import Atlas
from vispath_lit.data.sources.custom import SPLITS, Custom, divide
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question


def asked(starts: list[int | None], split: str | None = None) -> list[Question]:
    return [
        Question(f"q{i}", "What is it?", topic_entity=None if start is None else f"e{start}", split=split)
        for i, start in enumerate(starts)
    ]


@settings(max_examples=60, deadline=None)
@given(starts=st.lists(st.none() | st.integers(0, 12), max_size=40), seed=st.integers(0, 5))
def test_a_division_is_complete_disjoint_and_keeps_starts_together(
    starts: list[int | None], seed: int
) -> None:
    questions = asked(starts)
    parts = divide(questions, seed)
    assert set(parts) == set(SPLITS)
    found = [question.id for split in SPLITS for question in parts[split]]
    assert sorted(found) == sorted(question.id for question in questions)
    sides = [{q.topic_entity for q in parts[split]} - {None} for split in SPLITS]
    assert sum(map(len, sides)) == len(set[str | None]().union(*sides))
    groups = len({question.topic_entity or question.id for question in questions})
    assert all(parts.values()) == (groups >= 3)


def test_a_division_is_8_1_1_by_seed_and_whatever_the_order() -> None:
    questions = asked(list(range(100)))
    parts = divide(questions, 0)
    assert [len(parts[split]) for split in SPLITS] == [80, 10, 10]
    assert divide(questions, 0) == parts
    assert divide(questions, 1) != parts
    other = divide(questions[::-1], 0)
    assert all({q.id for q in other[split]} == {q.id for q in parts[split]} for split in SPLITS)


def custom(folder: Path, questions: Path) -> Custom:
    return Custom(str(folder), str(questions), str(folder.parent / "cache"))


def test_a_file_with_a_split_field_is_split_by_it(toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    write_questions(file, [Question("a", "?", split="train"), Question("b", "?", split="test")])
    source = custom(toy_folder, file)
    assert [[q.id for q in source.questions(split)] for split in ("train", "val", "test")] == [
        ["a"],
        [],
        ["b"],
    ]


def test_a_question_that_would_be_in_no_split_is_named(toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    write_questions(file, [Question("a", "?", split="train"), Question("b", "?"), Question("c", "?")])
    with pytest.raises(DataError, match=r"questions\.jsonl: 2 of 3 questions have no split, first 'b'"):
        custom(toy_folder, file).questions("train")


def test_a_file_without_that_field_is_divided(toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    questions = asked(list(range(10)))
    write_questions(file, questions)
    found = {split: custom(toy_folder, file).questions(split) for split in SPLITS}
    assert found == divide(questions, 0)
    assert custom(toy_folder, file).questions("exam") == []


def test_a_folder_has_a_file_a_split(toy_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "questions"
    folder.mkdir()
    write_questions(folder / "train.jsonl", asked([1, 2]))
    source = custom(toy_folder, folder)
    assert [question.id for question in source.questions("train")] == ["q0", "q1"]
    assert source.questions("val") == []


def test_a_graph_folder_is_built_into_the_cache_and_a_store_is_taken(
    toy_folder: Path, toy_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    file = tmp_path / "questions.jsonl"
    write_questions(file, asked([1]))
    store = custom(toy_folder, file).prepare()
    assert store.is_relative_to(toy_folder.parent / "cache")
    assert KnowledgeGraph.open(store).fingerprint == toy_graph.fingerprint
    assert custom(toy_graph.path, file).prepare() == toy_graph.path.resolve()


def test_what_is_missing_names_its_key(toy_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.graph is not set"):
        Custom("", str(tmp_path), str(tmp_path))
    with pytest.raises(DataError, match=r"data\.questions: .*nowhere"):
        custom(toy_folder, tmp_path / "nowhere")


def test_atlas_is_built_once_and_reads_its_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def build(root: Path, workers: int | None) -> None:
        built.append(root)
        (root / "questions").mkdir(parents=True)
        write_questions(root / "questions" / "val.jsonl", asked([3]))
        (root / "statistics.json").write_text("{}")

    monkeypatch.setattr(atlas, "build_atlas", build)
    source = Atlas(str(tmp_path / "atlas"))
    assert source.prepare() == source.prepare() == tmp_path / "atlas" / "store"
    assert built == [tmp_path / "atlas"]
    assert [question.id for question in source.questions("val")] == ["q0"]
    assert source.questions("exam") == []
