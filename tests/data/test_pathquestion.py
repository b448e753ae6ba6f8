"""PathQuestion's files, on a few invented people: what is read, how it is split, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from vispath_lit.data.sources.custom import SPLITS
from vispath_lit.data.sources.pathquestion import PathQuestion, write_graph
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

FACTS_2 = """\
ada_moss\tspouse\tbo_moss
bo_moss\tspouse\tada_moss
bo_moss\tparents\tcy_moss
bo_moss\tparents\tdi_moss
cy_moss\t\tplace_of_birth\tport_(old_town)
"""
FACTS_3 = "di_moss\tplace_of_birth\tnew_bay\n"
FACT_LINES = {"2H-kb.txt": FACTS_2, "3H-kb.txt": FACTS_2 + FACTS_3}
QUESTION_2 = "who is the parent of ada_moss 's couple ?\tdi_moss(cy_moss/di_moss/)\t" + (
    "ada_moss#spouse#bo_moss#parents#di_moss#<end>#di_moss\n"
)
RETURN_2 = "the spouse of ada_moss 's husband ?\tada_moss(ada_moss/)\t" + (
    "ada_moss#spouse#bo_moss#spouse#ada_moss#<end>#ada_moss\n"
)
QUESTION_3 = "where was the parent of ada_moss 's husband born ?\tport_(old_town)(port_(old_town)/)\t" + (
    "ada_moss#spouse#bo_moss#parents#cy_moss#place_of_birth#port_(old_town)#<end>#port_(old_town)\n"
)
QUESTION_LINES = {"PQ-2H.txt": QUESTION_2 + "\n" + RETURN_2, "PQ-3H.txt": QUESTION_3}
GOOD = "".join(QUESTION_LINES.values())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pathquestion"
    made.mkdir()
    for name, text in (FACT_LINES | QUESTION_LINES).items():
        (made / name).write_text(text, encoding="utf8")
    return made


def source(folder: Path, **values: object) -> PathQuestion:
    return PathQuestion(str(folder), folder.parent / "cache", **values)  # type: ignore[arg-type]


def test_a_line_becomes_a_question_with_all_its_gold(folder: Path) -> None:
    first, second = source(folder).all_questions
    assert first == Question(
        id="pq2h-1",
        text="who is the parent of ada moss's couple?",
        answers=("di moss", "cy moss"),
        answer_ids=("di_moss", "cy_moss"),
        topic_entity="ada_moss",
        gold_paths=(
            (("spouse", "bo_moss"), ("parents", "di_moss")),
            (("spouse", "bo_moss"), ("parents", "cy_moss")),
        ),
        hops=2,
    )
    assert second.id == "pq2h-3", "ids are line numbers, blank lines count"
    assert second.gold_paths == ((("spouse", "bo_moss"), ("spouse", "ada_moss")),), "a walk may return"


def test_the_graph_holds_the_facts_and_every_gold_path(folder: Path) -> None:
    both = source(folder, hops="both")
    graph = KnowledgeGraph.open(both.prepare())
    assert (graph.num_entities, graph.num_relations, graph.num_triples) == (6, 3, 6)
    assert graph.label(graph.entity_index("port_(old_town)")) == "port (old town)"
    assert graph.relation_labels()[graph.relation_index("place_of_birth")] == "place of birth"
    assert not len(graph.image_entity)
    found = supervise(graph, both.all_questions)
    assert (found.report.gold, found.report.questions) == (3, 3)
    two = KnowledgeGraph.open(source(folder).prepare())
    assert two.num_triples == 5


def test_the_graph_is_built_once_and_does_not_depend_on_the_order_of_lines(folder: Path) -> None:
    first = source(folder).prepare()
    lines = (folder / "2H-kb.txt").read_text(encoding="utf8").splitlines()
    text = "\r\n".join([*lines[::-1], lines[0]])
    (folder / "2H-kb.txt").write_text("\ufeff" + text, encoding="utf8", newline="")
    assert source(folder).prepare() == first
    assert len(list((folder.parent / "cache" / "pathquestion").iterdir())) == 1


def many(folder: Path, people: int) -> None:
    """Ten paraphrases about each of so many people."""
    facts, questions = [], []
    for i in range(people):
        facts += [f"p{i}\tspouse\tq{i}\n", f"q{i}\tparents\tr{i}\n"]
        path = f"p{i}#spouse#q{i}#parents#r{i}#<end>#r{i}"
        questions += [f"wording {word} of p{i} ?\tr{i}(r{i}/)\t{path}\n" for word in range(10)]
    (folder / "2H-kb.txt").write_text("".join(facts), encoding="utf8")
    (folder / "PQ-2H.txt").write_text("".join(questions), encoding="utf8")


@pytest.mark.parametrize("protocol", ["random", "start_disjoint"])
def test_splits_are_8_1_1_complete_and_seeded(folder: Path, protocol: str) -> None:
    many(folder, 30)
    parts = {split: source(folder, protocol=protocol).questions(split) for split in SPLITS}
    assert [len(parts[split]) for split in SPLITS] == [240, 30, 30]
    assert len({question.id for part in parts.values() for question in part}) == 300
    assert source(folder, protocol=protocol).questions("test") == parts["test"]
    assert source(folder, protocol=protocol, seed=1).questions("test") != parts["test"]
    starts = {split: {question.topic_entity for question in parts[split]} for split in SPLITS}
    assert bool(starts["train"] & starts["test"]) == (protocol == "random")
    assert bool(starts["train"] & starts["val"]) == (protocol == "random")
    assert source(folder, protocol=protocol).questions("exam") == []


@pytest.mark.parametrize(
    ("file", "line", "said"),
    [
        ("2H-kb.txt", "ada_moss\tspouse", "line 1: found 2 fields"),
        ("2H-kb.txt", "a\tb\tc\td", "line 1: found 4 fields"),
        ("2H-kb.txt", "a\t~b\tc", "~"),
        ("2H-kb.txt", "a\tb\tc\0", "NUL"),
        ("2H-kb.txt", "a\tb\t\udcff", "UTF-8"),
        ("2H-kb.txt", "a\tb\t" + "c" * (1 << 20), "longer than"),
        ("PQ-2H.txt", "why ?\tdi_moss(di_moss/)", "line 1: found 2 fields"),
        ("PQ-2H.txt", QUESTION_3, "expected 2 hops"),
        ("PQ-2H.txt", GOOD.replace("#<end>", ""), "found the path"),
        ("PQ-2H.txt", GOOD.replace("#bo_moss#", "##"), "found the path"),
        ("PQ-2H.txt", GOOD.replace("#<end>#di_moss", "#<end>#cy_moss"), "its answer is 'cy_moss'"),
        ("PQ-2H.txt", GOOD.replace("\tdi_moss(", "\tcy_moss("), "found the answers"),
        ("PQ-2H.txt", GOOD.replace("/)", ""), "found the answers"),
        ("PQ-2H.txt", GOOD.replace("spouse#bo_moss", "spouse#cy_moss"), "'ada_moss spouse cy_moss'"),
    ],
)
def test_a_bad_line_is_named(folder: Path, file: str, line: str, said: str) -> None:
    (folder / file).write_text(line, encoding="utf8", errors="surrogateescape")
    with pytest.raises(DataError, match=said) as caught:
        source(folder).all_questions  # noqa: B018
    assert f"{file}, line 1: " in str(caught.value)


def test_a_graph_that_another_process_wrote_meanwhile_is_as_good(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "cache" / "graph"
    write_graph(source(folder).facts, place)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    write_graph(source(folder).facts, place)
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before
    assert [one.name for one in place.parent.iterdir()] == ["graph"]


def test_a_wrong_value_or_a_missing_file_is_named(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.hops is 4"):
        source(folder, hops=4)
    with pytest.raises(ConfigError, match="'leaky'"):
        source(folder, protocol="leaky")
    (folder / "3H-kb.txt").unlink()
    source(folder, hops=2)
    with pytest.raises(DataError, match=r"3H-kb\.txt does not exist: data\.folder"):
        source(folder, hops="both")
