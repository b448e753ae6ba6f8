"""Makes the paper's tables: reads finished runs, or runs what is missing; writes Markdown, LaTeX, HTML.

FOLDER/
    <name>/              one run each (`vispath report table ... --out FOLDER` again goes on where it stopped)
    <table>.{md,tex,html}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from omegaconf import OmegaConf
from rich.text import Text

from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.evaluation import paper
from vispath_lit.evaluation.files import write_text
from vispath_lit.evaluation.sheets import Sheet, write_sheet
from vispath_lit.evaluation.tables import NAMES
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.mistakes import report
from vispath_lit.launch.paper_plans import Plan, plan
from vispath_lit.launch.record import read_metrics, run_folder
from vispath_lit.progress import console, printable, tell

BLIND = ", blind"  # what the label of a run says whose models saw no pictures
FOREIGN = (KeyError, TypeError, AttributeError, ValueError)  # What tables meet in files of another hand.
WITH_FIXED = ("main", "grounding", "cost")  # tables that show a training run's fixed system too
MIXED = WITH_FIXED  # tables whose rows stand each for itself: finished runs beside what is run for them
SHEETS: dict[str, Callable[[Sequence[paper.Run]], Sheet]] = {
    "main": paper.main_sheet,
    "backbones": paper.backbones_sheet,
    "grounding": paper.grounding_sheet,
    "ablation": paper.ablation_sheet,
    "cost": paper.cost_sheet,
    "beam": paper.beam_sheet,
}


def compared(runs: Sequence[Path], metric: str, protocol: str) -> Sheet:
    """Any finished runs on the same questions, each against the first.

    Raises:
        DataError: other questions, no such metric or protocol, or files that are not as a run writes them.
    """
    try:
        return paper.comparison_sheet(read_runs(runs), metric, protocol)
    except FOREIGN as error:
        raise DataError(
            f"a run's metrics.json is not as a run writes it ({error!r}): run it again"
        ) from error


def read_run(folder: Path, label: str | None = None) -> paper.Run:
    """A finished run, called by its system's name where no label is given.

    Raises:
        DataError: no finished run there, or files that are not as a run writes them.
    """
    metrics = read_metrics(folder)
    file = folder / "config.yaml"
    try:
        config = OmegaConf.to_container(OmegaConf.load(file)) if file.is_file() else {}
    except Exception as error:  # yaml and OmegaConf raise each their own
        raise DataError(f"{file} is damaged: {error}") from error
    wrong = [key for key in ("data", "split", "overall", "by_hop", "intervals", "cost") if key not in metrics]
    if wrong or not isinstance(config, dict):
        raise DataError(f"{folder}: its files are not as a run writes them ({wrong or 'config.yaml'})")
    settings = {str(key): value for key, value in config.items()}
    run = paper.Run(folder, label or str(metrics["system"]), settings, metrics)
    return replace(run, label=run.label + BLIND) if run.setting("chat.blind") else run


def read_runs(folders: Sequence[Path]) -> list[paper.Run]:
    """Several runs, told apart."""
    return told_apart([read_run(run_folder(folder)) for folder in folders])


def told_apart(runs: Sequence[paper.Run], others: Sequence[paper.Run] = ()) -> list[paper.Run]:
    """The runs; those called as another one, `others` included, get their folder's name."""
    names = [run.label for run in (*runs, *others)] + [str(run.metrics["system"]) for run in others]
    return [
        replace(run, label=f"{run.label} ({run.folder.name})") if names.count(run.label) > 1 else run
        for run in runs
    ]


def with_fixed(run: paper.Run) -> list[paper.Run]:
    """A training run, and the fixed system that it tested on the same questions."""
    fixed = run.metrics.get("fixed")
    if not isinstance(fixed, dict):
        return [run]
    metrics = {**fixed, "data": run.metrics["data"], "split": run.metrics["split"]}
    config = {**run.config, "parts": run.config.get("fixed", {})}
    return [paper.Run(run.folder, f"{run.label}, fixed parts", config, metrics), run]


def make_table(
    kind: str,
    runs: Sequence[Path],
    out: Path,
    overrides: Sequence[str] = (),
    vary: Sequence[str] = (),
    metric: str | None = None,
) -> Sheet:
    """One of the paper's tables, written into `out`.

    Args:
        kind: a key of `SHEETS`.
        runs: finished run folders; without any, or with overrides, what the table needs is run below `out`.
        overrides: of `conf/eval.yaml`, for all that is run.
        vary: `KEY=A,B`: a run for each value, of several keys each combination; `beam` varies one at a time.
        metric: that the table shows; default the paper's SBERT@0.3.

    Raises:
        ConfigError: an unknown table, settings that cannot be varied, or both runs and settings for a table
            that is about the differences between them.
    """
    if kind not in SHEETS:
        raise ConfigError(f"no table is called {kind!r}; there are {list(SHEETS)}")
    settings = bool(overrides or vary)
    if runs and settings and kind not in MIXED:
        raise ConfigError(f"{kind}: name runs, or settings, not both; {', '.join(MIXED)} take both")
    # First what is finished: a slip in a name is told before anything is asked and paid for.
    finished = [read_run(run_folder(folder)) for folder in runs]
    found = _run_all(plan(kind, overrides, vary), out) if settings or not runs else []
    found += told_apart(finished, found)
    if kind in WITH_FIXED:
        found = [one for run in found for one in with_fixed(run)]
    if not found:
        raise DataError(f"none of the runs of the table {kind} succeeded; see above")
    try:
        sheet = SHEETS[kind](found) if metric is None else _with_metric(kind, found, metric)
    except FOREIGN as error:
        raise DataError(
            f"a run's metrics.json is not as a run writes it ({error!r}): run it again"
        ) from error
    files = write_sheet(sheet, out, kind)
    tell(f"tables: {', '.join(map(str, files))}")
    return sheet


def _with_metric(kind: str, runs: Sequence[paper.Run], metric: str) -> Sheet:
    if kind in ("grounding", "cost"):
        raise ConfigError(f"the table {kind} has its own columns; leave the metric out")
    known = [name for name in NAMES if name in runs[0].metrics["overall"]]
    if metric not in known:
        raise ConfigError(f"no metric {metric!r}; the runs have {', '.join(known)}")
    makers: dict[str, Callable[[Sequence[paper.Run], str], Sheet]] = {
        "main": paper.main_sheet,
        "backbones": paper.backbones_sheet,
        "ablation": paper.ablation_sheet,
        "beam": paper.beam_sheet,
    }
    return makers[kind](runs, metric)


def _run_all(plan: Plan, out: Path) -> list[paper.Run]:
    """The finished runs of a plan; one that fails is told and left out, the others go on."""
    found = []
    for label, overrides in plan.items():
        folder = out / re.sub(r"[^A-Za-z0-9._-]+", "_", label)
        try:
            if not _done(folder, overrides):
                console.rule(Text(printable(label)))
                asked = [*overrides, f"run_dir={folder.absolute()}"]
                evaluate_run(load_config("eval", asked), asked)
                write_text(folder / "overrides.txt", "\n".join(overrides))
            found.append(read_run(folder, label))
        except VisPathError as error:
            report(error)
    return found


def _done(folder: Path, overrides: Sequence[str]) -> bool:
    """Whether this very run is there.

    Raises:
        ConfigError: another one is.
    """
    mark = folder / "overrides.txt"
    if not mark.is_file() or not (folder / "metrics.json").is_file():
        return False
    before = mark.read_text(encoding="utf8").splitlines()
    if before != list(overrides):
        raise ConfigError(f"{folder} holds a run with other settings, {before}: name another folder (--out)")
    return True
