from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vispath_lit.cli import app
from vispath_lit.engines.engine import Alone, EngineName, make_engine
from vispath_lit.errors import ConfigError


def test_alone_does_a_piece_when_it_is_asked_for() -> None:
    done: list[int] = []

    def work(piece: int) -> int:
        done.append(piece)
        return piece**2

    results = Alone().map(work, lambda: range(1_000_000_000))
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert done == [0, 1, 2]


def test_without_ray_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'vispath-lit\[ray\]'"):
        make_engine(EngineName.ray, 2)
    words = ["kg", "import", "tables", str(tmp_path), str(tmp_path / "store"), "--engine", "ray"]
    assert "vispath-lit[ray]" in str(CliRunner().invoke(app, words).exception)
    assert list(tmp_path.iterdir()) == []


def test_workers_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match="say --engine ray, too"):
        make_engine(EngineName.alone, 2)
    with pytest.raises(ConfigError, match="0 workers: expected at least 1"):
        make_engine(EngineName.ray, 0)
    assert CliRunner().invoke(app, ["kg", "embed", "store", "--workers", "0"]).exit_code == 2
    assert CliRunner().invoke(app, ["kg", "embed", "store", "--engine", "dask"]).exit_code == 2
