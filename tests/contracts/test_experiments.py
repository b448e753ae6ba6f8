"""Every experiment composes for training and evaluation, sets only keys that exist, and is in the help."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from vispath_lit.launch.config import conf_dir, load_config, plain, with_checkpoint

FILES = sorted((conf_dir() / "experiment").glob("*.yaml"))
NAMES = [file.stem for file in FILES]
GIVEN = ["run_dir=here"]
NEEDS = {name: ["data.folder=there"] for name in ("pathquestion", "metaqa", "webqsp")}


def leaves(node: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if isinstance(node, dict):
        return [leaf for key, value in node.items() for leaf in leaves(value, (*path, str(key)))]
    return [path]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("run", ["train", "eval"])
def test_an_experiment_composes_and_resolves(name: str, run: str) -> None:
    config = load_config(run, [*GIVEN, *NEEDS.get(name, []), f"experiment={name}"])
    assert OmegaConf.missing_keys(config) == set()
    assert plain(config)["parts"]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_an_experiment_sets_keys_that_exist(file: Path) -> None:
    node = OmegaConf.to_container(OmegaConf.load(file))
    assert isinstance(node, dict)
    choices = [choice for choice in node.pop("defaults", []) if isinstance(choice, dict)]
    chosen = [
        f"{key.removeprefix('override /')}={value}" for choice in choices for key, value in choice.items()
    ]
    base = load_config("train", [*GIVEN, *NEEDS.get(file.stem, []), *chosen])
    known = plain(base)
    for path in leaves(node):
        here: Any = known
        for key in path:
            assert key in here, f"{file.name} sets {'.'.join(path)}, which no config has"
            here = here[key]
    assert node or choices


@pytest.mark.parametrize(("name", "m3"), [("paper", 3), ("[gpu_bf16,paper]", 3), (None, 7)])
def test_what_an_experiment_sets_wins_over_a_checkpoint(name: str | None, m3: int) -> None:
    saved = plain(load_config("train", [*GIVEN, "parts.search.m3=7", "parts.search.backtrack=false"]))
    overrides = [*GIVEN, *([f"experiment={name}"] if name else [])]
    merged = with_checkpoint(load_config("eval", overrides), saved, overrides)
    assert (merged.parts.search.m3, merged.parts.search.backtrack) == (m3, m3 == 3)
    assert merged.parts.intent._target_.endswith("LearnedIntent"), "the rest stays the checkpoint's"


def test_the_users_own_words_win_over_an_experiment() -> None:
    overrides = [*GIVEN, "experiment=paper", "parts.search.m1=5"]
    saved = plain(load_config("train", [*GIVEN]))
    assert with_checkpoint(load_config("eval", overrides), saved, overrides).parts.search.m1 == 5


@pytest.mark.parametrize("script", ["train.py", "eval.py"])
def test_the_help_teaches(script: str) -> None:
    shown = subprocess.run(
        [sys.executable, conf_dir().parent / script, "--help"], capture_output=True, text=True, check=True
    ).stdout
    assert f"python {script} [KEY=VALUE ...]" in shown
    for name in NAMES:
        assert name in shown
        assert script == "eval.py" or f"\n  {name} " in shown, f"{name} is not explained in conf/train.yaml"
