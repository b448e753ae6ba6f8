"""`vispath ablate`: the trained system without one thing after the other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from vispath_lit.commands.options import Json
from vispath_lit.commands.printing import print_json


def ablate(
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE ...]", help="Of `python train.py`, for all runs."),
    ] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Where the runs go; one that holds some goes on.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="An ablation's name; repeatable.")] = None,
    ckpt: Annotated[
        Path | None,
        typer.Option(help="The full system, trained with these overrides; default: it is trained first."),
    ] = None,
    choice: Annotated[str, typer.Option("--ablations", help="A file of conf/ablation.")] = "default",
    as_json: Json = False,
) -> None:
    """Test the trained system without one thing after the other, trained anew where that matters.

    vispath ablate data.train_limit=2000 --only chain_pruning --only on_policy_states
    """
    from vispath_lit.launch.ablate import ablate as run_all
    from vispath_lit.launch.main import quiet
    from vispath_lit.progress import tell

    quiet()
    place = folder or Path("outputs") / "ablate" / time.strftime("%Y-%m-%d_%H-%M-%S")
    try:
        found = run_all(place, overrides or (), only=only or (), ckpt=ckpt, choice=choice)
    except KeyboardInterrupt:
        tell(f"the same command with --out {place} goes on")
        raise
    if as_json:
        print_json(found)
    if any(note.startswith("failed") for note in found["notes"].values()):
        raise typer.Exit(1)
