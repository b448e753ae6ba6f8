"""What a newcomer installs: the pins agree with each other, and a wheel holds the configs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from vispath_lit.data.atlas.packages import PACKAGES
from vispath_lit.launch import config

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))


def pins(lines: list[str]) -> dict[str, str]:
    """Name to version of the lines that pin one exactly, names as package indexes compare them."""
    found = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line.strip()) for line in lines]
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2] for match in found if match}


def names(lines: list[str]) -> set[str]:
    found = [re.match(r"[\w.-]+", line) for line in lines if not line.startswith("#")]
    return {re.sub(r"[-_.]+", "-", match[0]).lower() for match in found if match}


def test_the_packages_that_decide_the_graph_are_pinned_alike(project: dict[str, Any]) -> None:
    extra = project["project"]["optional-dependencies"]["atlas"]
    listed = (ROOT / "atlas-packages.txt").read_text(encoding="utf8").splitlines()
    assert pins(extra) == PACKAGES
    assert {name: pins(listed)[name] for name in PACKAGES} == PACKAGES
    assert names(extra) <= names(listed)


def test_everything_is_pinned_in_the_constraints(project: dict[str, Any]) -> None:
    constraints = pins((ROOT / "constraints.txt").read_text(encoding="utf8").splitlines())
    listed = pins((ROOT / "atlas-packages.txt").read_text(encoding="utf8").splitlines())
    extras = project["project"]["optional-dependencies"]
    kinds = [extras[name] for name in ("dev", "chat", "ray", "rdf", "sweep")]
    needed = sum(kinds, project["project"]["dependencies"])
    assert names(needed) - {"vispath-lit"} <= set(constraints)  # an extra may ask for others of its own
    assert {name: constraints.get(name) for name in listed} == listed


def test_a_wheel_holds_the_configs(project: dict[str, Any]) -> None:
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["vispath_lit"]
    ((source, inside),) = wheel["force-include"].items()
    assert ROOT / source == config.conf_dir()
    assert (ROOT / source / "train.yaml").is_file()
    assert inside == "vispath_lit/conf"
    assert project["project"]["scripts"]["vispath"] == "vispath_lit.cli:main"


def test_configs_inside_the_package_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "vispath_lit" / "launch" / "config.py"
    (tmp_path / "conf").mkdir()
    (tmp_path / "vispath_lit" / "conf").mkdir(parents=True)
    monkeypatch.setattr(config, "__file__", str(module))
    assert config.conf_dir() == tmp_path / "vispath_lit" / "conf"
    (tmp_path / "vispath_lit" / "conf").rmdir()
    assert config.conf_dir() == tmp_path / "conf"
