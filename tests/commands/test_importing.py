from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.commands.importing import formats
from vispath_lit.kg.store import KnowledgeGraph

runner = CliRunner()


@pytest.mark.parametrize("name", formats())
def test_every_format_teaches_its_options(name: str) -> None:
    kind = import_module(f"vispath_lit.kg.importers.{name}").Format
    assert is_dataclass(kind)
    shown = runner.invoke(app, ["kg", "import", name, "--help"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    for field in fields(kind):
        if field.name != "sources" and "help" in field.metadata:
            assert f"--{field.name.replace('_', '-')}" in shown.output
    assert name in runner.invoke(app, ["kg", "import", "--help"]).output


def test_an_import_with_options_and_questions(tmp_path: Path) -> None:
    (tmp_path / "kb.txt").write_text("Heat|directed_by|Michael Mann\n")
    (tmp_path / "1-hop").mkdir()
    (tmp_path / "1-hop" / "qa_test.txt").write_text("who directed [Heat]\tMichael Mann\n")
    store, questions = tmp_path / "out" / "store", tmp_path / "out" / "questions"
    words = ["kg", "import", "metaqa", str(tmp_path), str(store), "--questions", str(questions), "--json"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["graph"]["triples"] == 1
    assert report["questions"]["splits"]["test"]["questions"] == 1
    assert KnowledgeGraph.open(store).num_entities == 2
    assert (questions / "test.jsonl").is_file()
    folder = runner.invoke(app, [*words[:4], str(tmp_path / "f"), "--folder", "--questions", str(questions)])
    assert "leave out --folder" in str(folder.exception)


def test_a_format_that_is_not_there() -> None:
    assert runner.invoke(app, ["kg", "import", "absent", "a", "b"]).exit_code == 2
