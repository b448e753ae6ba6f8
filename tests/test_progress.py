"""What is told while something runs is shown as it is, whatever stands in names and folders."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from vispath_lit import progress
from vispath_lit.progress import tell, track

ODD = "runs/[red]m1=[1, 2][/x] \x1b[31m \\ end"
SHOWN = r"runs/[red]m1=[1, 2][/x] \x1b[31m \ end"


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> io.StringIO:
    written = io.StringIO()
    console = Console(file=written, force_terminal=request.param, width=40, color_system=None)
    monkeypatch.setattr(progress, "console", console)
    return written


@pytest.mark.parametrize("shown", [False], indirect=True)
def test_a_line_is_told_as_it_is(shown: io.StringIO) -> None:
    tell(f"{ODD}\n{ODD}")
    assert shown.getvalue() == f"{SHOWN}\n{SHOWN}\n"


@pytest.mark.parametrize("shown", [False, True], indirect=True)
def test_a_bar_takes_any_description_and_gives_every_item(shown: io.StringIO) -> None:
    assert list(track(range(3), ODD)) == [0, 1, 2]
    assert "runs/[red]" in shown.getvalue()
    assert "\x1b[31m" not in shown.getvalue()
