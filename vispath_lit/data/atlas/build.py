"""Atlas from its packages: graph folder, store, questions and their statistics, in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vispath_lit.data.atlas.graph import write_graph
from vispath_lit.data.atlas.questions.make import make_questions
from vispath_lit.data.atlas.questions.plan import Plan
from vispath_lit.data.made_folder import STATISTICS, moved_in, refuse_foreign, write_statistics
from vispath_lit.kg.build import build
from vispath_lit.kg.store import KnowledgeGraph

PARTS = ("graph", "store", "questions", "cues.json", "ATTRIBUTIONS.md", STATISTICS)
"""What a build writes."""


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
    refuse_foreign(out, PARTS, "Atlas")
    with moved_in(out, PARTS) as made:
        summary = write_graph(made, workers=workers)
        return build_questions(made, asdict(summary), workers=workers, plan=plan)


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
    write_statistics(folder, found)
    return found
