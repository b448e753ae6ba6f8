"""`ckpt_path=last` finds the newest training run, finished or killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vispath_lit.errors import CheckpointError
from vispath_lit.launch.checkpoint import resolve


def test_the_newest_last_checkpoint_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for time, run in ((3, "train/b"), (2, "train/c"), (1, "eval/d")):
        file = tmp_path / "outputs" / run / "checkpoints" / "last.ckpt"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"")
        os.utime(file, (time, time))
    assert resolve("last") == Path("outputs/train/b/checkpoints/last.ckpt")
    assert resolve("other.ckpt") == Path("other.ckpt")


def test_without_a_run_the_error_says_what_to_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="name one"):
        resolve("last")
