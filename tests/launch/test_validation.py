"""What a validation leaves behind: scores for the checkpoint, files for people, media for W&B."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from vispath_lit.errors import ConfigError
from vispath_lit.evaluation.records import read_records
from vispath_lit.launch.config import load_config
from vispath_lit.launch.fit import chooses
from vispath_lit.launch.train import train
from vispath_lit.launch.validation import COLUMNS, row
from vispath_lit.types import Question

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]
EPOCHS = 2
QUICK = ["parts/texts=exact", "parts/texts@fixed.texts=exact", "compare_fixed=false"]
QUICK += [f"trainer.max_epochs={EPOCHS}", "trainer.log_every_n_steps=1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    config = load_config("train", [*DATA, *QUICK, f"run_dir={folder}", f"cache_dir={folder / 'cache'}"])
    assert config.logger.wandb.offline
    train(config)
    return folder


def test_the_newest_validation_is_in_the_run_folder(run: Path) -> None:
    records = read_records(run / "validation.jsonl")
    questions = [json.loads(line) for line in (PLANETS / "questions.jsonl").read_text().splitlines()]
    assert {record.id for record in records} == {one["id"] for one in questions if one["split"] == "val"}
    assert all(record.candidates[0].origin == "topic" for record in records), "the start is given"
    page = (run / "validation.html").read_text(encoding="utf8")
    for record in records:
        shown = dict(zip(COLUMNS, row(record, "a/b.jpg"), strict=True))
        assert shown["image"] == "b.jpg"
        assert shown["right"] == bool(record.scores["hits@1"])
        assert record.path is not None
        assert shown["path"] == record.path.words
        assert record.path.words.startswith(record.path.entity_labels[0])
        assert record.path.words.endswith(record.path.entity_labels[-1])
        assert page.count(f'<p class="ask">{record.question}') == 1
    pictures = [one["image"] for one in questions if one["split"] == "val" and one["image"]]
    assert page.count("data:image/jpeg;base64,") == len(pictures) > 0


@pytest.mark.parametrize("name", ["validation.svg", "calibration.svg"])
def test_a_calibration_plot_is_a_picture_of_its_own(run: Path, name: str) -> None:
    root = ET.parse(run / name).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findall(".//{http://www.w3.org/2000/svg}circle")


def test_wandb_has_the_plots_the_tables_and_one_page_offline(run: Path) -> None:
    (media,) = run.glob("wandb/offline-run-*/files/media")
    (page,) = (media / "html" / "val").glob("report*.html")  # so that its pictures are kept once
    assert page.read_text(encoding="utf8") == (run / "validation.html").read_text(encoding="utf8")
    plots = [file.read_text(encoding="utf8") for file in (media / "html" / "val").glob("calibration*.html")]
    assert (run / "validation.svg").read_text(encoding="utf8") in plots
    questions = (PLANETS / "questions.jsonl").read_text(encoding="utf8").splitlines()
    images = {one["id"]: one["image"] for one in map(json.loads, questions)}
    tables = [json.loads(file.read_text()) for file in (media / "table" / "val").glob("questions*.json")]
    assert len(tables) == EPOCHS
    assert all(table["columns"] == list(COLUMNS) for table in tables)
    rows = [row(record, images[record.id]) for record in read_records(run / "validation.jsonl")]
    assert rows in [table["data"] for table in tables]


def test_what_chooses_the_checkpoint_has_gold() -> None:
    walked = Question("a", "?", topic_entity="e", gold_paths=((("r", "f"),),))
    answered = Question("b", "?", answers=("f",))
    assert chooses([walked, answered]) == "path_hit@3"
    assert chooses([answered]) == "answer_recall@3"
    assert chooses([walked, answered], "hits@1") == "hits@1"
    with pytest.raises(ConfigError, match=r"best_by is path_hit@3; .*hits@1"):
        chooses([answered], "path_hit@3")
    with pytest.raises(ConfigError, match="best_by is hits@1"):
        chooses([walked], "hits@1")


def test_losses_and_path_hits_per_hop_are_logged(run: Path) -> None:
    (file,) = run.glob("csv/**/metrics.csv")
    head = file.read_text(encoding="utf8").splitlines()[0].split(",")
    assert {"train/edge_loss", "train/chain_loss", "val/path_hit@3", "val/hits@1"} <= set(head)
    assert {"val/path_hit@3/2", "val/hits@1/2", "val/gold_pruned/1", "val/gold_pruned/2"} <= set(head)
