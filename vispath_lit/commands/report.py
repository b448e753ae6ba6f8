"""`vispath report RUN | compare | table`: the tables of finished runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from vispath_lit.commands.options import Json, Overrides
from vispath_lit.commands.printing import out, print_json
from vispath_lit.errors import DataError


class Given(StrEnum):
    """What the questions of a run granted."""

    nothing = "nothing"
    start = "start"
    start_and_depth = "start_and_depth"


class Form(StrEnum):
    """How a table is printed."""

    md = "md"
    tex = "tex"
    html = "html"


class ReportGroup(TyperGroup):
    """`vispath report RUN` is `vispath report show RUN`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["show", *args])


Format = Annotated[Form, typer.Option("--format", help="How it is printed.")]
report_app = typer.Typer(help="Tables of finished runs.", cls=ReportGroup)


@report_app.command("show")
def report_run(
    run: Annotated[Path, typer.Argument(help="A run folder.")] = Path("outputs/latest"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Every metric with intervals.")] = False,
    as_json: Json = False,
) -> None:
    """Print the tables of a run again."""
    from vispath_lit.evaluation.tables import markdown as as_markdown
    from vispath_lit.evaluation.tables import table
    from vispath_lit.launch.record import read_metrics, run_folder

    run = run_folder(run)
    metrics = read_metrics(run)
    if as_json:
        print_json(metrics)
        return
    try:
        shown = as_markdown(metrics) if markdown else table(metrics)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{run / 'metrics.json'} is not as a run writes it ({error!r}): run it again"
        ) from error
    if markdown:
        print(shown)
    else:
        out.print(shown)


@report_app.command("compare")
def report_compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Run folders; all against the first.")
    ],
    metric: Annotated[str, typer.Option(help="Such as hits@1, f1, path_hit@3 or sbert@0.3.")] = "hits@1",
    given: Annotated[Given, typer.Option(help="What the questions granted.")] = Given.nothing,
    form: Format = Form.md,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Also written here as md, tex, html.")
    ] = None,
) -> None:
    """Any runs on the same questions: the difference to the first, paired, with intervals.

    vispath report compare outputs/eval/A outputs/eval/B --given start
    """
    from vispath_lit.evaluation.sheets import WRITERS, write_sheet
    from vispath_lit.launch.paper_tables import compared
    from vispath_lit.launch.testing import PROTOCOLS

    protocol = "" if given is Given.nothing else PROTOCOLS[given.value]
    sheet = compared(runs, metric, protocol)
    if out_folder is not None:
        write_sheet(sheet, out_folder, "comparison")
    print(WRITERS[form.value](sheet), end="")


@report_app.command("table")
def report_table(
    kind: Annotated[str, typer.Argument(help="main, backbones, grounding, ablation, cost or beam.")],
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN...]", help="Run folders; without any, what is missing is run."),
    ] = None,
    overrides: Overrides = None,
    vary: Annotated[list[str] | None, typer.Option(help="KEY=A,B: a run for each; repeatable.")] = None,
    metric: Annotated[str | None, typer.Option(help="In place of the paper's sbert@0.3.")] = None,
    form: Format = Form.md,
    out_folder: Annotated[
        Path, typer.Option("--out", help="Where tables and new runs go; one that holds some goes on.")
    ] = Path("outputs/tables"),
) -> None:
    """One of the paper's tables: II main, III, IV backbones, V grounding, VI ablation, VII cost, Fig. 4 beam.

    vispath report table main outputs/eval/A outputs/eval/B

    vispath report table beam --set ckpt_path=best --set data.split=val

    vispath report table main outputs/train/LEARNED --set chat=openai --set chat.model=NAME

    Main, grounding and cost take finished runs and settings at once; the others one of them.
    """
    from vispath_lit.evaluation.sheets import WRITERS
    from vispath_lit.launch.main import quiet
    from vispath_lit.launch.paper_tables import make_table

    quiet()
    sheet = make_table(kind, runs or (), out_folder, overrides or (), vary or (), metric)
    print(WRITERS[form.value](sheet), end="")
