from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from vispath_lit.data.atlas import build as atlas_build
from vispath_lit.data.atlas.questions.plan import Plan
from vispath_lit.data.questions import read_questions
from vispath_lit.data.sources.atlas import Atlas
from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph

PLAN = Plan().scaled(0.004)


@dataclass(frozen=True)
class Summary:
    entities: int = 7


@pytest.fixture
def graph_from_toy(toy_atlas: tuple[KnowledgeGraph, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = toy_atlas[1].parent

    def write_graph(out: Path, *, workers: int | None) -> Summary:
        names = ("entities.tsv", "relations.tsv", "triples.tsv", "images.tsv")
        (out / "graph").mkdir()
        for name in names:
            shutil.copy(folder / name, out / "graph" / name)
        shutil.copytree(folder / "images", out / "graph" / "images")
        shutil.copy(toy_atlas[1], out / "cues.json")
        (out / "ATTRIBUTIONS.md").write_text("thanks", encoding="utf-8")
        return Summary()

    monkeypatch.setattr(atlas_build, "write_graph", write_graph)


@pytest.mark.usefixtures("graph_from_toy")
def test_a_build_is_whole_and_can_be_repeated(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "atlas"
    first = atlas_build.build_atlas(out, workers=1, plan=PLAN)
    assert sorted(p.name for p in out.iterdir()) == sorted(atlas_build.PARTS)
    assert json.loads((out / "statistics.json").read_text(encoding="utf-8")) == json.loads(json.dumps(first))
    plain = read_questions(out / "questions" / "train.jsonl", check_images=True)
    wide = read_questions(out / "questions" / "train_wide.jsonl", check_images=True)
    assert plain
    assert wide
    assert Atlas(str(out)).questions("train") == plain
    assert Atlas(str(out), wide=True).questions("train") == [*plain, *wide]
    assert KnowledgeGraph.open(out / "store").num_entities > 0
    (out / "questions" / "stale.jsonl").write_text("{}", encoding="utf-8")
    assert atlas_build.build_atlas(out, workers=1, plan=PLAN) == first
    assert not (out / "questions" / "stale.jsonl").exists()
    assert [p.name for p in out.parent.iterdir()] == ["atlas"]


@pytest.mark.usefixtures("graph_from_toy")
def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        atlas_build.build_atlas(tmp_path, workers=1, plan=PLAN)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_graph(out: Path, *, workers: int | None) -> Summary:
        (out / "half").write_text("done", encoding="utf-8")
        raise DataError("a package is missing")

    monkeypatch.setattr(atlas_build, "write_graph", write_graph)
    with pytest.raises(DataError, match="missing"):
        atlas_build.build_atlas(tmp_path / "atlas")
    assert not list(tmp_path.iterdir())
