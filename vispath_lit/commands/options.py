"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vispath_lit.engines.engine import EngineName

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Checkpoint = Annotated[Path, typer.Option("--ckpt", help="A checkpoint; `best`: the newest below outputs.")]
Graph = Annotated[Path | None, typer.Option(help="A graph folder or store; default: the training graph.")]
Transfer = Annotated[bool, typer.Option("--transfer", help="Allow a graph that the checkpoint never saw.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="A config override such as parts/texts=exact; repeatable.")
]
ChosenEngine = Annotated[
    EngineName, typer.Option("--engine", help="Who does the work: this process alone, or workers of ray.")
]
Workers = Annotated[
    int | None, typer.Option(help="Of ray, at the same time; default one a processor.", min=1)
]
