"""Trains the full system once, then tests it without one thing after the other, and tabulates the difference.

FOLDER/
    full/             a training run
    <name>/           a run without <name>: trained anew, or the full system's checkpoint tested
    ablations.json    Hits@1 per hop, with paired intervals against the full system
    ablations.md      the same for people

A folder that is used again goes on where it stopped: a run with `metrics.json` is done, a killed training
resumes from its last checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from pydantic import TypeAdapter, ValidationError

from vispath_lit.errors import ConfigError, VisPathError
from vispath_lit.evaluation.ablations import ablation_table, markdown, rich_table
from vispath_lit.evaluation.files import rounded, write_json, write_text
from vispath_lit.evaluation.records import read_records
from vispath_lit.launch.checkpoint import ABLATED, read_checkpoint, resolve, weights_fingerprint
from vispath_lit.launch.config import conf_dir, load_config, plain
from vispath_lit.launch.mistakes import report
from vispath_lit.launch.record import RunRecord, point_latest
from vispath_lit.launch.testing import PROTOCOLS
from vispath_lit.launch.train import train
from vispath_lit.progress import console, tell

FULL = "full"
PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Ablation:
    """One thing left out.

    Attributes:
        overrides: of `conf/train.yaml`, that leave it out.
        retrain: whether training changes.
        needs: a key that only a system which has the thing has; without it there is nothing to leave out.
    """

    overrides: tuple[str, ...]
    retrain: bool
    needs: str | None = None


def ablate(
    folder: Path,
    overrides: Sequence[str] = (),
    *,
    only: Sequence[str] = (),
    ckpt: Path | None = None,
    choice: str = "default",
) -> dict[str, Any]:
    """Runs what is not done yet and writes the tables; returns the content of `ablations.json`.

    An ablation that cannot run is named in the tables' notes, the others go on.

    Args:
        folder: where the runs go.
        overrides: of `conf/train.yaml`, for all runs alike.
        only: names of ablations; all where it is empty.
        ckpt: a checkpoint of the full system, trained with these very overrides; None trains it first.
        choice: the file of `conf/ablation`.

    Raises:
        ConfigError: unknown names, or a folder that holds runs with other settings.
    """
    chosen = _chosen(read_ablations(choice), only)
    notes: dict[str, str] = {}
    full = folder.absolute() / FULL
    checkpoint = None if ckpt is None else resolve(ckpt)
    config = _config(overrides, full)
    _run(config, full, {"overrides": list(overrides)}, checkpoint, mark=PLAN)
    checkpoint = checkpoint or full / "checkpoints" / "best.ckpt"
    done = []
    for name, ablation in chosen.items():
        place = full.parent / name
        plan = {"overrides": ablation.overrides, "retrain": ablation.retrain}
        if ablation.needs is not None and OmegaConf.select(config, ablation.needs) is None:
            notes[name] = f"the full system has none (no {ablation.needs})"
            continue
        try:
            without = _config([*overrides, *ablation.overrides], place)
            if _same_system(config, without):
                notes[name] = f"the full system has it off already ({' '.join(ablation.overrides)})"
                continue
            console.rule(f"without {name}")
            _run(without, place, plan, None if ablation.retrain else checkpoint, mark=ABLATED)
            done.append(name)
        except VisPathError as error:
            report(error)
            notes[name] = f"failed: {error}"
    return _tables(full, done, notes, config.seed)


def read_ablations(choice: str = "default") -> dict[str, Ablation]:
    """The ablations of `conf/ablation/<choice>.yaml` by name.

    Raises:
        ConfigError: no such file, or one that is not a mapping of names to overrides and retrain.
    """
    file = conf_dir() / "ablation" / f"{choice}.yaml"
    if not file.is_file():
        known = sorted(path.stem for path in file.parent.glob("*.yaml"))
        raise ConfigError(f"no ablations {choice!r}; there are {known}")
    try:
        found = TypeAdapter(dict[str, Ablation]).validate_python(
            OmegaConf.to_container(OmegaConf.load(file)), strict=False
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{file}: {place}: {first['msg']}; expected overrides and retrain") from error
    for name in found:
        if name == FULL or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
            raise ConfigError(f"{file}: an ablation cannot be called {name!r}; use letters, digits, _ and -")
    return found


def _chosen(known: Mapping[str, Ablation], only: Sequence[str]) -> dict[str, Ablation]:
    if unknown := sorted(set(only) - set(known)):
        raise ConfigError(f"no ablation is called {unknown}; there are {list(known)}")
    return {name: ablation for name, ablation in known.items() if not only or name in only}


def _config(overrides: Sequence[str], folder: Path) -> DictConfig:
    config = load_config("train", overrides)
    config.run_dir = str(folder)
    config.compare_fixed = False
    return config


def _same_system(first: DictConfig, second: DictConfig) -> bool:
    return {**plain(first), "run_dir": ""} == {**plain(second), "run_dir": ""}


def _run(
    config: DictConfig, folder: Path, plan: Mapping[str, Any], checkpoint: Path | None, *, mark: str
) -> None:
    """One training run, or one test of `checkpoint`, unless its metrics are there."""
    given = None if checkpoint is None else weights_fingerprint(read_checkpoint(checkpoint))
    _check_plan(folder / mark, {**plan, "checkpoint": given})
    if (folder / "metrics.json").is_file():
        tell(f"{folder.name}: done before")
        return
    last = folder / "checkpoints" / "last.ckpt"
    if checkpoint is not None:
        config.fit, config.ckpt_path = False, str(checkpoint)
    elif last.is_file():
        config.ckpt_path = str(last)
    train(config)


def _check_plan(file: Path, plan: Mapping[str, Any]) -> None:
    """Writes down what a run is, or refuses to mix it with another one."""
    wanted = json.loads(json.dumps(plan))
    if not file.is_file():
        RunRecord(file.parent)
        write_json(file, wanted)
        return
    try:
        found = json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is damaged ({error}): remove the folder {file.parent}") from error
    if found != wanted:
        raise ConfigError(
            f"{file.parent} holds a run with other settings, {found}; expected {wanted}: name another folder"
        )


def _tables(full: Path, done: Sequence[str], notes: Mapping[str, str], seed: int) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for protocol in PROTOCOLS.values():
        if not RunRecord(full).predictions(protocol).is_file():
            continue
        records = {
            name: read_records(RunRecord(full.parent / name).predictions(protocol)) for name in [FULL, *done]
        }
        tables[protocol] = ablation_table(records.pop(FULL), records, seed=seed)
        console.print(rich_table(protocol, tables[protocol]))
    for name, note in notes.items():
        tell(f"{name}: {note}")
    found = rounded({"tables": tables, "notes": notes})
    assert isinstance(found, dict)
    write_json(full.parent / "ablations.json", found)
    write_text(full.parent / "ablations.md", markdown(tables, notes))
    tell(f"tables: {full.parent / 'ablations.md'}")
    outputs = Path("outputs").absolute()
    if full.is_relative_to(outputs):  # the newest run is the full system, not one that lacks something
        point_latest(full, outputs)
    return found
