from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vispath_lit.chat.client import ChatClient
from vispath_lit.chat.scripted import ScriptedModel
from vispath_lit.data.bench.gold import BenchPlan, parse_hops
from vispath_lit.data.bench.make import make_bench
from vispath_lit.data.bench.pictures import picturable, shown_pictures
from vispath_lit.data.bench.rewrite import Asked, ChatRewrite
from vispath_lit.data.bench.select import sequence_keys
from vispath_lit.data.bench.walks import Walks
from vispath_lit.data.questions import read_questions
from vispath_lit.data.sources.custom import Custom
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.charts import alone
from vispath_lit.evaluation.lengths import length_chart
from vispath_lit.kg.build import build
from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

COUNTRIES = 24


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> KnowledgeGraph:
    """Cities with pictures, each in a country with money and a head of state; two pictures for every third.

    `known for` has several ends; cities 0 and 1 share a picture.
    """
    folder = tmp_path_factory.mktemp("bench") / "graph"
    (folder / "images").mkdir(parents=True)
    entities = ["id\tlabel\taliases\ttype\tdescription"]
    entities += [f"k{i}\tCraft{i}\t\tcraft\t" for i in range(3)]
    triples, images = ["subject\trelation\tobject"], ["entity\tpath\tkind"]
    for i in range(COUNTRIES):
        entities += [
            f"c{i}\tCity{i}\tTown{i}\tcity\t",
            f"n{i}\tNation{i}\t\tcountry\t",
            f"p{i}\tPerson{i}\t\tperson\t",
        ]
        entities.append(f"m{i}\tMoney{i // 2}\t\tcurrency\t")
        triples += [f"c{i}\tcountry\tn{i}", f"n{i}\tcurrency\tm{i}", f"n{i}\thead_of_state\tp{i}"]
        triples += [f"p{i}\tborn_in\tc{(i + 7) % COUNTRIES}", f"m{i}\tissued_by\tp{(i + 3) % COUNTRIES}"]
        triples += [f"c{i}\tknown_for\tk{(i + j) % 3}" for j in (0, 1)]
        for j in range(1 + (i % 3 == 0)):
            colour = (10, 20, 30) if i < 2 and j == 0 else (i * 9, 80 * j, 255 - i)
            Image.new("RGB", (8, 8), colour).save(folder / "images" / f"{i}_{j}.png")
            images.append(f"c{i}\timages/{i}_{j}.png\t{('skyline', 'arms')[j]}")
    relations = ["id\tlabel", "country\tcountry", "currency\tcurrency", "head_of_state\thead of state"]
    relations += ["born_in\tborn in", "issued_by\tissued by", "known_for\tknown for"]
    tables = {"entities": entities, "triples": triples, "images": images, "relations": relations}
    for name, lines in tables.items():
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf8")
    build(folder, folder.parent / "store")
    return KnowledgeGraph.open(folder.parent / "store")


PLAN = BenchPlan(questions=60, seed=3)


@pytest.fixture(scope="module")
def made(world: KnowledgeGraph, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("made") / "bench"
    make_bench(world, out, PLAN)
    return out


def all_questions(out: Path) -> list[Question]:
    return [
        q for split in ("train", "val", "test") for q in read_questions(out / "questions" / f"{split}.jsonl")
    ]


def test_every_path_has_one_end_and_no_shorter_way(world: KnowledgeGraph, made: Path) -> None:
    questions = all_questions(made)
    assert len(questions) >= 40
    for question in questions:
        assert question.topic_entity is not None
        start = world.entity_index(question.topic_entity)
        (path,) = question.gold_paths
        relations = [world.relation_index(relation) for relation, _ in path]
        ends = follow(world, start, relations)
        assert world.entity_ids(ends) == list(question.answer_ids) == [path[-1][1]]
        assert len(path) == question.hops
        assert len(set(relations)) == len(relations)
        assert world.relation_index("known_for") not in relations
        near = {start}
        for _ in range(len(path) - 1):  # a slow search by hand: all that fewer steps reach
            near |= {
                int(t) for e in near for t in world.out_tail[world.out_indptr[e] : world.out_indptr[e + 1]]
            }
        assert int(ends[0]) not in near


def test_no_question_names_its_start_or_answer(made: Path) -> None:
    for question in all_questions(made):
        assert question.topic_entity is not None
        assert question.topic_entity.replace("c", "City") not in question.text
        assert not any(answer in question.text for answer in question.answers)
        assert question.text.startswith("What is the ")


def test_splits_share_no_start_and_every_split_has_some(made: Path) -> None:
    starts = {
        s: {q.topic_entity for q in read_questions(made / "questions" / f"{s}.jsonl")}
        for s in ("train", "val", "test")
    }
    assert all(starts.values())
    assert not starts["train"] & starts["test"]
    assert not starts["train"] & starts["val"]
    assert not starts["val"] & starts["test"]


def test_what_is_balanced_stays_under_the_caps(made: Path) -> None:
    found = json.loads((made / "statistics.json").read_text())["all"]
    assert set(found["hops"]) == {"2", "3", "4"}
    assert found["top_last_relation_share"] <= 0.7  # 2 of 5 last relations, of the questions wanted
    assert found["questions"] == len(all_questions(made))
    assert sum(found["question_lengths"].values()) == found["questions"]


def test_a_question_picture_is_not_in_the_graph_where_another_is(world: KnowledgeGraph, made: Path) -> None:
    graph = KnowledgeGraph.open(made / "store")
    gallery = {Path(file).read_bytes() for file in graph.image_files}
    tagged = set()
    for question in all_questions(made):
        assert question.image is not None
        assert question.topic_entity is not None
        entity = world.entity_index(question.topic_entity)
        own = {Path(file).read_bytes() for file, _ in world.images_of(entity)}
        shown = question.image.read_bytes()
        assert shown in own
        kept = "reference_picture" in question.tags
        tagged.add(kept)
        assert (shown in gallery) is kept
        assert kept is (len(own) == 1)
        assert graph.images_of(entity)
        assert question.image.stem not in " ".join(world.image_files)
    assert tagged == {True, False}
    assert graph.num_triples == world.num_triples


def test_a_shared_picture_names_nobody(world: KnowledgeGraph) -> None:
    ids = set(world.entity_ids(picturable(world)))
    assert "c1" not in ids  # its only picture is that of c0, too
    assert "c0" in ids  # which has another
    shown = shown_pictures(world, [world.entity_index("c0"), world.entity_index("c1")])
    assert [world.entity_id(e) for e in shown] == ["c0"]
    assert shown[world.entity_index("c0")].kind == "arms"


def test_the_same_seed_gives_the_same_bytes(world: KnowledgeGraph, made: Path, tmp_path: Path) -> None:
    make_bench(world, tmp_path / "again", PLAN)
    files = [
        sorted(p.relative_to(r) for p in r.rglob("*") if p.is_file()) for r in (made, tmp_path / "again")
    ]
    assert files[0] == files[1]
    assert all((made / p).read_bytes() == (tmp_path / "again" / p).read_bytes() for p in files[0])
    make_bench(world, tmp_path / "again", BenchPlan(questions=60, seed=4))
    assert KnowledgeGraph.open(tmp_path / "again" / "store").num_entities == world.num_entities
    assert [q.text for q in all_questions(tmp_path / "again")] != [q.text for q in all_questions(made)]


def test_data_custom_reads_it(made: Path, tmp_path: Path) -> None:
    source = Custom(str(made / "store"), str(made / "questions"), str(tmp_path))
    assert source.prepare() == made / "store"
    assert len(source.questions("train")) > len(source.questions("test")) > 0


def test_new_words_are_taken_only_where_they_keep_the_rule(world: KnowledgeGraph, tmp_path: Path) -> None:
    seen: list[Asked] = []

    def rewrite(asked: Sequence[Asked]) -> list[str | None]:
        seen.extend(asked)
        kinds = [f"Which one is it, number {i}?" for i in range(len(asked))]
        kinds[0] = f"What of {world.label(asked[0].entities[0])}?"
        kinds[1] = f"Is it {world.label(asked[1].entities[-1])}?"
        return [None if i == 2 else text for i, text in enumerate(kinds)]

    found = make_bench(world, tmp_path / "b", PLAN, rewrite=rewrite)
    texts = {question.text for question in all_questions(tmp_path / "b")}
    assert found["rewriting_refused"] == 3
    assert found["rewritten"] == len(seen) - 3
    assert {one.text for one in seen[:3]} <= texts
    assert "Which one is it, number 3?" in texts


def test_a_chat_model_may_rewrite(world: KnowledgeGraph, tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: {"question": "Who pays there?"})
    found = make_bench(world, tmp_path / "b", PLAN, rewrite=ChatRewrite(world, ChatClient(model)))
    assert found["rewritten"] == found["all"]["questions"]
    said = str(model.requests[0].messages[1].parts[0])
    assert "[city in the picture]" in said
    assert "City" not in said


@settings(max_examples=60)
@given(st.integers(1, 5000), st.dictionaries(st.integers(1, 4), st.integers(0, 1000), min_size=1))
def test_counts_add_up(questions: int, hops: dict[int, int]) -> None:
    if not sum(hops.values()):
        with pytest.raises(ConfigError, match="weights"):
            BenchPlan(questions=questions, hops=hops)
        return
    counts = BenchPlan(questions=questions, hops=hops).counts()
    assert sum(counts.values()) == questions
    for count, weight in hops.items():
        assert abs(counts[count] - questions * weight / sum(hops.values())) <= 1


@pytest.mark.parametrize("text", ["", "2", "2:x", "2:3:4", "2:-1", "two:1", "2:1,,3:1"])
def test_hops_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="2:500"):
        parse_hops(text)


def test_hops_are_read() -> None:
    assert parse_hops("2:500, 3:1200") == {2: 500, 3: 1200}
    with pytest.raises(ConfigError, match="1 to 6"):
        BenchPlan(hops={9: 1})


def test_a_graph_without_pictures_or_paths_says_so(
    world: KnowledgeGraph, toy_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "entities.tsv").write_text("id\tlabel\na\tA\n")
    (bare / "relations.tsv").write_text("id\tlabel\nr\tr\n")
    (bare / "triples.tsv").write_text("subject\trelation\tobject\na\tr\ta\n")
    build(bare, tmp_path / "bare-store")
    with pytest.raises(DataError, match=r"of 1 entities 0 have a picture.*images\.tsv"):
        make_bench(KnowledgeGraph.open(tmp_path / "bare-store"), tmp_path / "out")
    with pytest.raises(DataError, match=r"no path of \[6\] hops"):
        make_bench(toy_graph, tmp_path / "out", BenchPlan(hops={6: 1}))
    assert not (tmp_path / "out").exists()


def test_only_its_own_folder_is_replaced(world: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        make_bench(world, tmp_path / "mine", PLAN)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="a file"):
        make_bench(world, tmp_path / "file", PLAN)
    with pytest.raises(DataError, match="lies in it"):
        make_bench(world, world.path.parent, PLAN)


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 200).map(str), st.integers(1, 50), min_size=1))
def test_the_chart_shows_every_question(lengths: dict[str, int]) -> None:
    svg = alone(length_chart(lengths))
    bars = svg.count("<rect")
    assert 1 <= bars <= 10
    shown = sum(float(part.split(" %")[0]) for part in svg.split("<title>questions: ")[1:])
    assert shown == pytest.approx(100, abs=0.06 * bars)


def test_a_sample_of_starts_is_looked_at(world: KnowledgeGraph, tmp_path: Path) -> None:
    found = make_bench(world, tmp_path / "b", BenchPlan(questions=20, starts=5, walks=1))
    assert found["starts"] == 5
    assert all(count <= 5 for count in found["gold_paths"].values())
    assert np.sum(list(found["wanted"].values())) == 20


def test_long_sequences_among_many_relations_have_keys_of_their_own() -> None:
    relations = np.array([[4096, 0, 0, 0, 0], [0, 0, 0, 0, 0], [8191, 1, 2, 3, 4], [0, 0, 0, 0, 0]])
    keys = sequence_keys(Walks(np.zeros((4, 6), dtype=np.int64), relations))
    assert np.unique(keys, return_inverse=True)[1].tolist() == [1, 0, 2, 0]
