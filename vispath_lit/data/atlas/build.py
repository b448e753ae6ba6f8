"""Atlas from its packages: graph folder, store, questions and their statistics, in one call."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vispath_lit.data.atlas.graph import write_graph
from vispath_lit.data.atlas.questions.make import make_questions
from vispath_lit.data.atlas.questions.plan import Plan
from vispath_lit.errors import DataError
from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph

PARTS = ("graph", "store", "questions", "cues.json", "ATTRIBUTIONS.md", "statistics.json")
"""What a build writes; the last one is the sign of a whole build."""


def build_atlas(out: Path, *, workers: int | None = None, plan: Plan | None = None) -> dict[str, Any]:
    """Builds Atlas into `out` and returns its statistics; the same packages give the same bytes.

    The parts are made beside `out` and moved in when all are whole.

    Args:
        workers: processes that draw pictures; one a core where None.
        plan: numbers of questions; the usual ones where None.

    Raises:
        DataError: a package is missing, or `out` holds something that is not Atlas.
    """
    out = out.absolute()
    _refuse_foreign(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        summary = write_graph(made, workers=workers)
        found = build_questions(made, asdict(summary), workers=workers, plan=plan)
        _move_in(made, out)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return found


def build_questions(
    folder: Path, summary: Mapping[str, object], *, workers: int | None = None, plan: Plan | None = None
) -> dict[str, Any]:
    """Store, questions and `statistics.json` for the graph and the `cues.json` in `folder`.

    Args:
        summary: what the graph's build tells of itself, kept in the statistics.
    """
    report = build(folder / "graph", folder / "store")
    graph = KnowledgeGraph.open(folder / "store")
    questions = make_questions(
        graph,
        folder / "cues.json",
        folder / "questions",
        workers=workers or os.cpu_count() or 1,
        plan=plan,
    )
    found: dict[str, Any] = {
        "graph": {**summary, "fingerprint": report.fingerprint},
        "questions": questions,
    }
    text = json.dumps(found, ensure_ascii=False, indent=2)
    (folder / "statistics.json").write_text(text + "\n", encoding="utf-8")
    return found


def _refuse_foreign(out: Path) -> None:
    strange = sorted(p.name for p in out.iterdir() if p.name not in PARTS) if out.is_dir() else []
    if strange or (out.exists() and not out.is_dir()):
        raise DataError(
            f"{out} holds {strange[0] if strange else 'a file'}, which is not part of Atlas; "
            "give an empty folder or one that an earlier build wrote"
        )


def _move_in(made: Path, out: Path) -> None:
    """Replaces the parts of an earlier build."""
    out.mkdir(exist_ok=True)
    (out / "statistics.json").unlink(missing_ok=True)
    for name in PARTS:
        old, new = out / name, made / name
        if old.is_dir():
            shutil.rmtree(old)
        if new.exists():
            new.replace(old)
