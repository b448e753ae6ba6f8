"""Miniatures of published data sets, written here, go through the commands that docs/data.md gives."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from vispath_lit.data.sources.metaqa import MetaQA
from vispath_lit.data.sources.webqsp import WebQSP
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.record import read_metrics
from vispath_lit.launch.train import train

QUICK = ["parts/texts=exact", "logger=none", "trainer.max_epochs=1", "compare_fixed=false", "threads=1"]
FILMS = ["Alba", "Brook", "Cedar", "Dune", "Ember", "Flint"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _cached(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISPATH_CACHE", str(cache))


def put(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf8")


def metaqa(folder: Path) -> Path:
    """Six films of three directors; a question for each film and split."""
    facts = [f"{film}|directed_by|Director {i // 2}" for i, film in enumerate(FILMS)]
    put(folder / "kb.txt", "\n".join(facts) + "\n")
    for split in ("train", "dev", "test"):
        one = "".join(f"who directed [{film}]\tDirector {i // 2}\n" for i, film in enumerate(FILMS))
        other = [FILMS[i + 1 - 2 * (i % 2)] for i in range(6)]
        two = "".join(f"films of the director of [{f}]\t{o}\n" for f, o in zip(FILMS, other, strict=True))
        for hops, text, kind in ((1, one, "movie_to_director"), (2, two, "movie_to_director_to_movie")):
            put(folder / f"{hops}-hop" / "vanilla" / f"qa_{split}.txt", text)
            put(folder / f"{hops}-hop" / f"qa_{split}_qtype.txt", f"{kind}\n" * 6)
    return folder


def webqsp(folder: Path) -> Path:
    """Six films as above; no path is gold, and one answer of each split is nowhere."""
    graph = [[film, "film.film.directed_by", f"Director {i // 2}"] for i, film in enumerate(FILMS)]
    for split in ("train", "validation", "test"):
        lines = [
            {"id": f"{split}-{i}", "question": f"who directed {film}?", "q_entity": [film], "graph": graph,
             "answer": [f"Director {i // 2}"], "a_entity": [f"Director {i // 2}"]}
            for i, film in enumerate(FILMS)
        ]  # fmt: skip
        lines[-1] |= {"answer": ["Nobody"], "a_entity": ["Nobody"]}
        put(folder / f"{split}.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    return folder


def pathquestion(folder: Path) -> Path:
    facts, questions = [], []
    for i in range(10):
        facts += [f"p{i}\tspouse\tq{i}\n", f"q{i}\tparents\tr{i}\n"]
        path = f"p{i}#spouse#q{i}#parents#r{i}#<end>#r{i}"
        questions += [f"who is the parent of p{i} 's spouse ?\tr{i}(r{i}/)\t{path}\n"]
    put(folder / "2H-kb.txt", "".join(facts))
    put(folder / "PQ-2H.txt", "".join(questions))
    return folder


MAKERS = {"metaqa": metaqa, "webqsp": webqsp, "pathquestion": pathquestion}


@pytest.mark.parametrize("name", list(MAKERS))
def test_one_command_trains_and_tests_and_another_transfers(name: str, tmp_path: Path) -> None:
    keys = [f"experiment={name}", f"data.folder={MAKERS[name](tmp_path / name)}", *QUICK]
    train(load_config("train", [*keys, f"run_dir={tmp_path / 'run'}"]))
    metrics = read_metrics(tmp_path / "run")
    asked = {"metaqa": 12, "webqsp": 6, "pathquestion": 1}[name]
    assert metrics["questions"] == asked, "no question leaves the denominator"
    supervision = json.loads((tmp_path / "run" / "supervision.json").read_text(encoding="utf8"))["train"]
    if name == "webqsp":
        assert metrics["not_in_graph"]["questions"] == 1
        assert (supervision["weak"], supervision["skipped"]) == (5, 1)
        assert supervision["without"] == {"skipped": ["train-5"]}
    else:
        assert supervision["gold"] == supervision["questions"] > 0
    planets = Path(__file__).parents[2] / "examples" / "planets"
    moved = [
        "data=custom",
        f"data.graph={planets / 'graph'}",
        f"data.questions={planets / 'questions.jsonl'}",
    ]
    moved += [
        f"ckpt_path={tmp_path / 'run' / 'checkpoints' / 'best.ckpt'}",
        "transfer=true",
        "fit=false",
        *QUICK,
    ]
    train(
        load_config("train", [*moved, "parts/grounder=name", "data.limit=2", f"run_dir={tmp_path / 'moved'}"])
    )
    assert read_metrics(tmp_path / "moved")["questions"] == 2


def test_a_conversion_is_kept_by_the_content_of_its_settings(tmp_path: Path, cache: Path) -> None:
    folder = metaqa(tmp_path / "films")
    every = MetaQA(str(folder), cache)
    store = every.prepare()
    assert KnowledgeGraph.open(store).num_entities == 9
    assert MetaQA(str(folder), cache).prepare() == store
    two = MetaQA(str(folder), cache, hops=[2])
    assert two.prepare() != store
    assert {one.hops for one in two.questions("test")} == {2}
    assert every.questions("exam") == []
    put(folder / "kb.txt", "Alba|directed_by|Somebody Else\n")
    assert MetaQA(str(folder), cache).prepare() != store


def test_what_cannot_be_converted_leaves_nothing_behind(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "empty").mkdir()
    for made in (
        MetaQA(str(tmp_path / "empty"), tmp_path / "c"),
        WebQSP(str(tmp_path / "empty"), tmp_path / "c"),
    ):
        with pytest.raises(DataError):
            made.prepare()
    assert not [path for path in (tmp_path / "c").rglob("*") if path.is_file()]
    with pytest.raises(ConfigError, match=r"data\.hops is \[4\]"):
        MetaQA(str(tmp_path), cache, hops=[4])
    with pytest.raises(ConfigError, match=r"data\.folder is not set"):
        WebQSP("", cache).prepare()
    with pytest.raises(DataError, match="does not exist"):
        WebQSP(str(tmp_path / "nowhere"), cache).prepare()


def test_a_list_of_encyclopedic_vqa_is_tested_by_its_own_rule(tmp_path: Path, toy_folder: Path) -> None:
    row = {
        "question": "What does France border?",
        "answer": "Germany&&Monaco",
        "question_type": "multi_answer",
    }
    row |= {"wikipedia_title": "France", "wikipedia_url": "https://en.wikipedia.org/wiki/France"}
    with (tmp_path / "test.csv").open("w", encoding="utf8", newline="") as out:
        writer = csv.DictWriter(out, list(row))
        writer.writeheader()
        writer.writerow(row)
    keys = ["data=evqa", f"data.graph={toy_folder}", f"data.folder={tmp_path}", f"run_dir={tmp_path / 'run'}"]
    keys += ["parts=fixed", "parts/texts=exact", "parts/grounder=name", "given=[start]", "threads=1"]
    evaluate_run(load_config("eval", keys), keys)
    metrics = read_metrics(tmp_path / "run")
    assert metrics["main"] == "given_start"
    assert not list(tmp_path.rglob("predictions.jsonl")), "nothing but what is given was asked"
    assert set(metrics["given_start"]["overall"]) >= {"vqa_accuracy", "hits@1"}
    assert metrics["given_start"]["intervals"]["overall"]["vqa_accuracy"] == [None, None]
