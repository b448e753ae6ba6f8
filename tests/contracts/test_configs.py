"""Every config of every group: composes, names a real target that takes its keys, and explains each key."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from hydra.utils import get_object
from omegaconf import DictConfig, OmegaConf

from vispath_lit.launch.config import conf_dir, load_config
from vispath_lit.launch.parts import PARTS

FILES = sorted(conf_dir().rglob("*.yaml"))
NAMES = [str(file.relative_to(conf_dir())) for file in FILES]
CHOICES = [(file.parent.name, file.stem) for file in FILES if file.parent.parent == conf_dir() / "parts"]


def targets(node: object) -> list[DictConfig]:
    """Every mapping with a `_target_`, at any depth."""
    if not isinstance(node, DictConfig):
        return []
    found = [node] if "_target_" in node else []
    for key in map(str, node):
        if not OmegaConf.is_missing(node, key) and not OmegaConf.is_interpolation(node, key):
            found += targets(node[key])
    return found


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_each_key_is_explained(file: Path) -> None:
    lines = file.read_text(encoding="utf8").splitlines()
    assert lines[0].startswith("# "), f"{file.name} does not begin with what it is"
    in_defaults = False
    for number, line in enumerate(lines, 1):
        if re.match(r"^\S", line):
            in_defaults = line.startswith("defaults:")
        key = re.match(r"^\s*([\w.]+):\s+\S", line)
        if key and not in_defaults and key[1] != "_target_" and not line.lstrip().startswith("#"):
            explained = " # " in line or lines[number - 2].lstrip().startswith("#")
            assert explained or in_hydra(lines, number), f"{file.name}:{number}: {key[1]} has no comment"


def in_hydra(lines: list[str], number: int) -> bool:
    """Whether a line belongs to Hydra's own node, which Hydra documents."""
    heads = [line for line in lines[:number] if re.match(r"^\S", line) and not line.startswith("#")]
    return bool(heads) and heads[-1].startswith("hydra:")


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_each_target_takes_its_keys(file: Path) -> None:
    for node in targets(OmegaConf.load(file)):
        parameters = inspect.signature(get_object(node["_target_"])).parameters
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        unknown = {str(key) for key in node} - {"_target_"} - set(parameters)
        assert takes_any or not unknown, f"{file.name}: {node['_target_']} takes no {unknown}"


@pytest.mark.parametrize(("group", "choice"), CHOICES, ids=[f"{g}={c}" for g, c in CHOICES])
def test_each_choice_composes_alone(group: str, choice: str) -> None:
    config = load_config("train", [f"parts/{group}={choice}"])
    chosen = OmegaConf.load(conf_dir() / "parts" / group / f"{choice}.yaml")
    assert OmegaConf.select(chosen, "_target_") == OmegaConf.select(config, f"parts.{group}._target_")


@pytest.mark.parametrize("parts", ["fixed", "learned"])
def test_a_system_has_every_part(parts: str) -> None:
    assert set(load_config("eval", [f"parts={parts}"]).parts) == set(PARTS)
