"""`vispath ask | predict | kg | data | ablate | report`: small commands; `--help` teaches each."""

from __future__ import annotations

import typer

from vispath_lit.commands.ablate import ablate
from vispath_lit.commands.ask import ask, predict
from vispath_lit.commands.data import data_app
from vispath_lit.commands.kg import kg_app
from vispath_lit.commands.report import report_app
from vispath_lit.launch.mistakes import mended

app = typer.Typer(
    help="Question answering over multimodal knowledge graphs, with the path as evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.command()(ask)
app.command()(predict)
app.add_typer(kg_app, name="kg")
app.add_typer(data_app, name="data")
app.command()(ablate)
app.add_typer(report_app, name="report")


def main() -> None:
    """Runs the command line: exit code 1 for a user's data, 2 for usage, never a traceback for either."""
    with mended():
        app()


if __name__ == "__main__":
    main()
