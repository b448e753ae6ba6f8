"""The run folder: what was run, on what, with which versions, and what came of it.

outputs/<job>/<time>/
    config.yaml         the resolved config, secrets removed
    versions.json       Python, platform, packages
    fingerprints.json   graph, questions, encoders, checkpoint
    metrics.json        the tables (DESIGN section 5)
    predictions.jsonl   a line a question, nothing granted; beside it other protocols and the fixed system
    report.html         the same for people
    calibration.svg     accuracy over confidence
    supervision.json    what training questions were trained on, and which of them have no path
    validation.*        what the newest validation of a training run saw: lines, page, calibration
    *.ckpt, logs        of a training run
outputs/latest          the newest run
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.evaluation.comparison import NOTHING
from vispath_lit.evaluation.files import write_json, write_text
from vispath_lit.launch.redaction import without_secrets

LATEST = "latest"


class RunRecord:
    """Writes the files of one run folder, each by a temporary name that is renamed.

    Raises:
        ConfigError: a folder that cannot be made or written to.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).absolute()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):  # A run's hours must not end at its first file.
                pass
        except OSError as error:
            raise ConfigError(
                f"run_dir: {self.folder} cannot be written to ({error.strerror}); name another folder"
            ) from error

    def config(self, resolved: Mapping[str, object]) -> None:
        """Writes `config.yaml` from plain containers (`OmegaConf.to_container(..., resolve=True)`)."""
        write_text(self.folder / "config.yaml", OmegaConf.to_yaml(without_secrets(resolved)))

    def versions(self) -> None:
        """Writes `versions.json`."""
        write_json(self.folder / "versions.json", versions())

    def fingerprints(self, found: Mapping[str, str]) -> None:
        """Writes `fingerprints.json`."""
        write_json(self.folder / "fingerprints.json", dict(found))

    def metrics(self, found: Mapping[str, object]) -> None:
        """Writes `metrics.json`: sorted keys, six digits; NaN is refused."""
        write_json(self.folder / "metrics.json", found)

    def predictions(self, protocol: str = NOTHING, *, fixed: bool = False) -> Path:
        """Where the evaluator writes; `predictions.jsonl` has nothing granted."""
        parts = ["predictions", *(["fixed"] if fixed else []), *([] if protocol == NOTHING else [protocol])]
        return self.folder / f"{'.'.join(parts)}.jsonl"

    @property
    def report(self) -> Path:
        """Where the report goes."""
        return self.folder / "report.html"


def versions() -> dict[str, object]:
    """Python, system and every installed package; no host, user or folder name."""
    packages: dict[str, str] = {}
    for found in metadata.distributions():
        if name := found.metadata["Name"]:  # The first on the path is the one that is imported.
            packages.setdefault(name.lower().replace("_", "-"), found.version)
    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "packages": dict(sorted(packages.items())),
    }


def point_latest(run: str | Path, root: str | Path | None = None) -> Path:
    """Makes `root/latest` point to `run` by one rename; returns it.

    It is a relative link, so that the outputs folder can be moved; where links are not possible, a text
    file with the same relative path.

    Args:
        run: the run folder.
        root: the outputs folder; default two above `run` (`outputs/<job>/<time>`).

    Raises:
        ConfigError: `root/latest` is a folder of its own, or `run` lies outside `root`.
    """
    folder = Path(run).absolute()
    outputs = Path(root).absolute() if root is not None else folder.parents[1]
    latest = outputs / LATEST
    if not folder.is_relative_to(outputs):
        raise ConfigError(f"the run {folder.name} lies outside {outputs.name}: {LATEST} cannot point to it")
    if latest.is_dir() and not latest.is_symlink():
        raise ConfigError(f"{outputs.name}/{LATEST} is a folder, expected a link; move it away")
    target = folder.relative_to(outputs)
    with tempfile.TemporaryDirectory(dir=outputs, prefix=".latest-") as place:
        partial = Path(place) / LATEST
        try:
            partial.symlink_to(target, target_is_directory=True)
        except (OSError, NotImplementedError):  # Windows without the right, some network drives.
            partial.write_text(f"{target.as_posix()}\n", encoding="utf8")
        partial.replace(latest)
    return latest


def latest_run(root: str | Path = "outputs") -> Path:
    """The run that `root/latest` points to, whether it is a link or a text file.

    Raises:
        DataError: there is none, or what it points to is gone.
    """
    outputs = Path(root).absolute()
    latest = outputs / LATEST
    if not latest.exists():
        raise DataError(f"{outputs.name}/{LATEST} points to no run; run train.py or eval.py first")
    folder = latest.resolve()
    if latest.is_file():
        folder = (outputs / latest.read_text(encoding="utf8").strip()).resolve()
    if not folder.is_dir() or not folder.is_relative_to(outputs.resolve()):
        raise DataError(f"{outputs.name}/{LATEST} points to {folder.name}, which is no run in {outputs.name}")
    return folder


def run_folder(run: Path) -> Path:
    """A run's folder; for `outputs/latest` as a text file the one that it names.

    Raises:
        DataError: that one is gone.
    """
    return latest_run(run.parent) if run.name == LATEST and run.is_file() else run


def read_metrics(run: str | Path) -> dict[str, Any]:
    """The content of a run's `metrics.json`.

    Raises:
        DataError: no such run, or a damaged file.
    """
    file = Path(run) / "metrics.json"
    try:
        found = json.loads(file.read_text(encoding="utf8"))
    except OSError as error:
        raise DataError(
            f"{file} cannot be read ({error.strerror}): name a run folder that is finished"
        ) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is damaged: {error}") from error
    if not isinstance(found, dict) or "system" not in found:
        raise DataError(f"{file} holds no metrics of a run")
    return found
