"""PathQuestion as a store and question files; `data=pathquestion` reads the published files without this."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from vispath_lit.data.importers.files import write_report
from vispath_lit.data.questions import write_questions
from vispath_lit.data.sources.custom import SPLITS
from vispath_lit.data.sources.pathquestion import PathQuestion
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.importers.pathquestion import Format
from vispath_lit.kg.staging.run import import_graph


def convert(
    folder: str | Path,
    out: str | Path,
    *,
    hops: Literal[2, 3, "both"] = "both",
    protocol: Literal["random", "start_disjoint"] = "start_disjoint",
    seed: int = 0,
) -> dict[str, Any]:
    """Writes `OUT/store` and `OUT/questions/{train,val,test}.jsonl`.

    Args:
        hops: of the facts and questions to take.
        protocol, seed: of the split, as in `data=pathquestion`.

    Returns:
        What was read; that of the questions is also written beside them.

    Raises:
        DataError: a missing file, or a malformed line.
    """
    importer = Format((Path(folder),), hops=str(hops))
    graph = import_graph(importer, Path(out) / "store")
    questions = convert_questions(
        importer, Path(out) / "store", Path(out) / "questions", protocol=protocol, seed=seed
    )
    return {"graph": graph.as_dict(), "questions": questions}


def convert_questions(
    importer: Format,
    store: Path,
    folder: Path,
    *,
    protocol: Literal["random", "start_disjoint"] = "start_disjoint",
    seed: int = 0,
    on_error: OnError = "fail",
) -> dict[str, Any]:
    """Writes the question files alone; `store` is not read, and the files are published without faults."""
    hops: Literal[2, 3, "both"] = "both" if importer.hops == "both" else 2 if importer.hops == "2" else 3
    counts: dict[str, int] = {}
    source = PathQuestion(str(importer.sources[0]), folder, hops=hops, protocol=protocol, seed=seed)
    for split in SPLITS:
        questions = source.questions(split)
        counts[split] = len(questions)
        write_questions(folder / f"{split}.jsonl", questions)
    return write_report(folder, {"splits": counts, "protocol": protocol, "seed": seed})
