from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vispath_lit.data.importers import metaqa, pathquestion, rog
from vispath_lit.data.questions import read_questions
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph

KB = """\
Heat|directed_by|Michael Mann
Thief|directed_by|Michael Mann
Thief|starred_actors|James Caan
Heat|starred_actors|Al Pacino
Heat|release_year|1995
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf8")
    return folder


def metaqa_files(folder: Path) -> Path:
    return write(
        folder,
        {
            "kb.txt": KB,
            "1-hop/vanilla/qa_dev.txt": "who directed [Heat]\tMichael Mann\n",
            "1-hop/qa_dev_qtype.txt": "movie_to_director\n",
            "3-hop/vanilla/qa_train.txt": "who starred in films of [Heat]'s director\tJames Caan\n"
            "what of [Unknown]\tJames Caan|Nobody\n",
            "3-hop/qa_train_qtype.txt": "movie_to_director_to_movie_to_actor\n"
            "movie_to_director_to_movie_to_year\n",
            "3-hop/ntm/qa_train.txt": "other words on [Heat]\tJames Caan\nx [Heat]\t1995\n",
        },
    )


def test_metaqa_with_gold_paths(tmp_path: Path) -> None:
    report = metaqa.convert(metaqa_files(tmp_path / "MetaQA"), tmp_path / "out")
    graph = KnowledgeGraph.open(tmp_path / "out" / "store")
    assert (graph.num_entities, graph.num_triples) == (6, 5)
    assert graph.type_of(graph.entity_index("James Caan")) == "actor"
    assert graph.relation_label(graph.relation_index("directed_by")) == "directed by"
    (first,) = read_questions(tmp_path / "out" / "questions" / "val.jsonl")
    assert (first.text, first.topic_entity, first.hops) == ("who directed Heat", "Heat", 1)
    assert first.gold_paths == ((("directed_by", "Michael Mann"),),)
    known, unknown = read_questions(tmp_path / "out" / "questions" / "train.jsonl")
    assert known.text == "who starred in films of Heat's director"
    assert known.gold_paths == (
        (("directed_by", "Michael Mann"), ("~directed_by", "Thief"), ("starred_actors", "James Caan")),
    )
    assert (unknown.gold_paths, unknown.answers) == ((), ("James Caan", "Nobody"))
    assert report["questions"]["splits"]["train"] == {
        "questions": 2,
        "without gold path": 1,
        "topic not in the graph": 1,
        "an answer not in the graph": 1,
    }
    assert supervise(graph, [first, known]).report.gold == 2


def test_metaqa_from_an_archive_and_by_hops(tmp_path: Path) -> None:
    folder = metaqa_files(tmp_path / "MetaQA")
    with zipfile.ZipFile(tmp_path / "MetaQA.zip", "w") as archive:
        for file in sorted(folder.rglob("*.txt")):
            archive.write(file, file.relative_to(tmp_path))
    metaqa.convert(tmp_path / "MetaQA.zip", tmp_path / "out", hops=(3,), variant="ntm")
    found = read_questions(tmp_path / "out" / "questions" / "train.jsonl")
    assert found[0].text == "other words on Heat"
    assert not (tmp_path / "out" / "questions" / "val.jsonl").exists()


def test_metaqa_types_are_found_by_line(tmp_path: Path) -> None:
    folder = metaqa_files(tmp_path / "MetaQA")
    (folder / "1-hop/vanilla/qa_dev.txt").write_text(
        "\nwho directed [Heat]\tMichael Mann\nwhen [Heat]\t1995\n"
    )
    (folder / "1-hop/qa_dev_qtype.txt").write_text("\r\nmovie_to_director\r\nmovie_to_year\r\n")
    metaqa.convert(folder, tmp_path / "out")
    found = read_questions(tmp_path / "out" / "questions" / "val.jsonl")
    assert [one.gold_paths[0][0][0] for one in found] == ["directed_by", "release_year"]
    (folder / "1-hop/qa_dev_qtype.txt").write_text("movie_to_year\n\nmovie_to_year\n")
    metaqa.convert(folder, tmp_path / "out")
    found = read_questions(tmp_path / "out" / "questions" / "val.jsonl")
    assert [len(one.gold_paths) for one in found] == [0, 1]  # no type is another question's


def test_metaqa_faults(tmp_path: Path) -> None:
    folder = metaqa_files(tmp_path / "MetaQA")
    (folder / "1-hop/vanilla/qa_dev.txt").write_text("no topic\tx\n[Heat] who\tMichael Mann\n")
    (folder / "1-hop/qa_dev_qtype.txt").write_text("movie_to_director\nmovie_to_director\n")
    with pytest.raises(DataError, match=r"qa_dev\.txt, line 1: no question with one \[topic\]"):
        metaqa.convert(folder, tmp_path / "out")
    report = metaqa.convert(folder, tmp_path / "out", on_error="skip")
    assert report["questions"]["skipped"] == {"no question with one [topic] and answers": 1}
    (folder / "1-hop/qa_dev_qtype.txt").write_text("movie_to_director\n")
    with pytest.raises(DataError, match=r"qa_dev\.txt: line 2 has no type"):
        metaqa.convert(folder, tmp_path / "out", on_error="skip")
    with pytest.raises(DataError, match="no questions; expected files such as"):
        metaqa.convert(folder, tmp_path / "out", on_error="skip", variant="audio")


def asked(number: int, **changed: object) -> dict[str, object]:
    record: dict[str, object] = {
        "id": f"Q-{number}",
        "question": "what is the capital of france?",
        "answer": ["Paris"],
        "q_entity": ["France"],
        "a_entity": ["Paris"],
        "graph": [
            ["France", "location.country.capital", "Paris"],
            ["Paris", "people.person.x", "m.0abc"],
            ["m.0abc", "founded", "1999-01-01"],
            ["m.0abc", "height", "35.5"],
        ],
    }
    return {**record, **changed}


ASKED = [
    asked(0),
    asked(1, a_entity=["m.0abc"], q_entity=["Nowhere", "France"], answer=["m.0abc", "Paris"]),
    asked(2, a_entity=["Berlin"], answer=["Berlin"]),
    asked(3, graph=[]),
]


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "zip"])
def test_rog_in_every_form(tmp_path: Path, form: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    lines = "\n".join(json.dumps(record, ensure_ascii=False) for record in ASKED)
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(ASKED), files / "test-00000-of-00001.parquet")
    elif form == "json":
        (files / "test.json").write_text(json.dumps(ASKED, indent=1))
    elif form == "jsonl":
        (files / "test.jsonl").write_text(lines)
    else:
        pq.write_table(pa.Table.from_pylist(ASKED), tmp_path / "part.parquet")
        with zipfile.ZipFile(files / "all.zip", "w") as archive:
            archive.write(tmp_path / "part.parquet", "data/test-0.parquet")
    report = rog.convert([files], tmp_path / "out")
    graph = KnowledgeGraph.open(tmp_path / "out" / "store")
    assert [graph.entity_id(i) for i in range(graph.num_entities)] == [
        "France", "Paris", "m.0abc", "1999-01-01", "35.5",
    ]  # fmt: skip
    assert graph.relation_labels()[:3] == ["country capital", "person x", "founded"]
    found = read_questions(tmp_path / "out" / "questions" / "test.jsonl")
    assert [(q.topic_entity, q.hops, q.tags, q.answer_ids) for q in found] == [
        ("France", 1, (), ("Paris",)),
        ("France", 2, (), ("m.0abc",)),
        ("France", None, ("no_path",), ("Berlin",)),
        ("France", None, ("no_path",), ("Paris",)),
    ]
    assert found[1].meta == {"topic_entities": ["Nowhere", "France"]}
    assert report["questions"]["splits"] == {
        "test": {
            "questions": 4,
            "without a path": 2,
            "without answers": 0,
            "no topic in the graph": 0,
            "no answer in the graph": 1,
            "own triples": 12,
        }
    }
    assert report["questions"]["entities"] == {"all": 5, "unnamed": 1, "literal": 2}
    own = rog.Subgraphs(tmp_path / "out" / "questions" / "test.subgraphs.arrow")
    assert own["Q-0"].tolist() == [[0, 0, 1], [1, 1, 2], [2, 2, 3], [2, 3, 4]]
    assert (len(own), own["Q-3"].tolist()) == (4, [])


MALFORMED: list[tuple[Any, str]] = [
    (asked(9, graph=[["a", "b"]]), "graph has a step that is not"),
    (asked(9, graph=[["a", "b", 1]]), "graph is no list of"),
    (asked(9, graph=[["a", "b", None]]), "graph has a step with null"),
    (asked(9, graph="abc"), "graph has a step that is not"),
    (asked(9, question=" "), "question is no text"),
    (asked(9, answer=[1]), "answer is no list of texts"),
    (asked(9, id=None), "id is no text"),
    ([1], "no JSON object"),
    (asked(9, answer=float("nan")), "not valid JSON"),
    (asked(9, graph=[["a", "~b", "c"]]), "begins with ~"),
    (asked(9, graph=[["a", "b", " "]]), "empty object"),
    (asked(9, graph=[["a", "b", "\ud800"]]), "graph is no list of"),
]


@pytest.mark.parametrize(("record", "reason"), MALFORMED)
def test_rog_faults_are_named_or_counted(tmp_path: Path, record: object, reason: str) -> None:
    (tmp_path / "dev.jsonl").write_text("\n".join(map(json.dumps, [asked(0), record, asked(1)])))
    with pytest.raises(DataError, match=rf"dev\.jsonl, line 2: .*{reason}"):
        rog.convert([tmp_path / "dev.jsonl"], tmp_path / "out")
    report = rog.convert([tmp_path / "dev.jsonl"], tmp_path / "out", on_error="skip")
    assert sum(report["graph"]["skipped"].values()) == 1
    assert report["questions"]["splits"]["val"]["questions"] in (2, 3)
    assert KnowledgeGraph.open(tmp_path / "out" / "store").num_triples == 4


@pytest.mark.parametrize("text", ["[", "[{}", "[{} {}]", '[{"a": }]', "[" * 100_000])
def test_a_broken_array_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "train.json").write_text(text)
    with pytest.raises(DataError, match=r"train\.json: not a valid JSON array after object"):
        rog.convert([tmp_path / "train.json"], tmp_path / "out", on_error="skip")


def test_rog_refuses_what_it_cannot_place(tmp_path: Path) -> None:
    (tmp_path / "data.jsonl").write_text(json.dumps(asked(0)))
    with pytest.raises(DataError, match="the name tells no split"):
        rog.convert([tmp_path / "data.jsonl"], tmp_path / "out")
    (tmp_path / "test.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(DataError, match="not a Parquet file"):
        rog.convert([tmp_path / "test.parquet"], tmp_path / "out")
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, [asked(0), asked(0)])))
    with pytest.raises(DataError, match=r"train\.jsonl, line 2: repeated question id"):
        rog.convert([tmp_path / "train.jsonl"], tmp_path / "out")


def test_a_parquet_column_of_another_kind_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([asked(0, graph="France capital Paris")]), tmp_path / "test.parquet")
    with pytest.raises(DataError, match=r"test\.parquet, line 1: malformed question: graph is no list"):
        rog.convert([tmp_path / "test.parquet"], tmp_path / "out")


@pytest.mark.parametrize("answers", [5, "Paris", {"text": "Paris"}])
def test_nsm_answers_that_are_no_list_are_named(tmp_path: Path, answers: object) -> None:
    record = {"id": "Q", "question": "what?", "entities": [0], "answers": answers, "subgraph": {"tuples": []}}
    files = {"entities.txt": "France\n", "relations.txt": "capital\n", "test_simple.json": json.dumps(record)}
    write(tmp_path / "nsm", files)
    with pytest.raises(DataError, match=r"test_simple\.json, line 1: malformed question: answer is no list"):
        rog.convert([tmp_path / "nsm"], tmp_path / "out")


def test_nsm_numbers_are_names(tmp_path: Path) -> None:
    record: dict[str, Any] = {
        "id": "WebQTrn-1",
        "question": "who",
        "entities": [0],
        "answers": [{"kb_id": "m.2", "text": "Two"}],
        "subgraph": {"entities": [0, 1], "tuples": [[0, 0, 1]]},
    }
    wrong = {**record, "id": "x", "subgraph": {"tuples": [[0, 0, 7]]}}
    files = {"entities.txt": "m.1\nm.2\n", "relations.txt": "a.b.c\n", "train_dep.json": "[]"}
    write(tmp_path / "nsm", {**files, "train_simple.json": f"{json.dumps(record)}\n{json.dumps(wrong)}\n"})
    report = rog.convert([tmp_path / "nsm"], tmp_path / "out", on_error="skip")
    assert list(report["graph"]["skipped"]) == ["malformed question: graph has a step with null"]
    (question,) = read_questions(tmp_path / "out" / "questions" / "train.jsonl")
    assert (question.topic_entity, question.answers, question.answer_ids) == ("m.1", ("Two",), ("m.2",))
    (tmp_path / "nsm" / "relations.txt").unlink()
    with pytest.raises(DataError, match=r"needs both"):
        rog.convert([tmp_path / "nsm"], tmp_path / "out")


def distances(edges: Sequence[tuple[str, str]], start: str) -> dict[str, int]:
    """Slow and obvious: steps from `start`, either way round."""
    found = {start: 0}
    while True:
        new = {
            b: found[a] + 1 for a, b in [*edges, *((b, a) for a, b in edges)] if a in found and b not in found
        }
        if not new:
            return found
        found |= new


def test_hops_are_distances(tmp_path: Path) -> None:
    edges = [("a", "b"), ("c", "b"), ("c", "d"), ("d", "e"), ("f", "e"), ("a", "a")]
    expected = distances(edges, "a")
    graph = [[head, "r", tail] for head, tail in edges]
    records = [asked(i, graph=graph, q_entity=["a"], a_entity=[name]) for i, name in enumerate("abcdef")]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, records)))
    rog.convert([tmp_path / "test.jsonl"], tmp_path / "out")
    found = read_questions(tmp_path / "out" / "questions" / "test.jsonl")
    within = [steps if steps <= 4 else None for steps in (expected[name] for name in "abcdef")]
    assert [question.hops for question in found] == [steps or None for steps in within]
    assert [question.tags == () for question in found] == [steps is not None for steps in within]


def test_pathquestion_as_a_store(tmp_path: Path) -> None:
    facts = "".join(f"s{i}\thas_part\tm{i}\nm{i}\tmade_of\te{i}\n" for i in range(12))
    questions = "".join(
        f"what is s{i} 's part made of ?\te{i}(e{i}/)\ts{i}#has_part#m{i}#made_of#e{i}#<end>#e{i}\n"
        for i in range(12)
    )
    write(tmp_path / "pq", {"2H-kb.txt": facts, "PQ-2H.txt": questions})
    report = pathquestion.convert(tmp_path / "pq", tmp_path / "out", hops=2)
    graph = KnowledgeGraph.open(tmp_path / "out" / "store")
    assert (graph.num_triples, graph.relation_labels()[:2]) == (24, ["has part", "made of"])
    assert sum(report["questions"]["splits"].values()) == 12
    found = read_questions(tmp_path / "out" / "questions" / "train.jsonl")
    assert supervise(graph, found).report.gold == len(found) > 0
