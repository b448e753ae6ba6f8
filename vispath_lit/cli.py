"""`vispath ask | predict | kg | data | ablate | report`: small commands; `--help` teaches each."""

from __future__ import annotations

import json
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from vispath_lit.errors import DataError
from vispath_lit.kg.faults import OnError
from vispath_lit.launch.importing import import_app
from vispath_lit.launch.main import mended

app = typer.Typer(
    help="Question answering over multimodal knowledge graphs, with the path as evidence.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


class ReportGroup(TyperGroup):
    """`vispath report RUN` is `vispath report show RUN`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["show", *args])


report_app = typer.Typer(help="Tables of finished runs.", cls=ReportGroup)
kg_app = typer.Typer(help="Build a graph store and look at it.", no_args_is_help=True)
data_app = typer.Typer(help="Build the embedded data and look at questions.", no_args_is_help=True)
app.add_typer(kg_app, name="kg")
app.add_typer(data_app, name="data")
app.add_typer(report_app, name="report")
kg_app.add_typer(import_app, name="import")
out = Console()

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Checkpoint = Annotated[Path, typer.Option("--ckpt", help="A checkpoint; `best`: the newest below outputs.")]
Graph = Annotated[Path | None, typer.Option(help="A graph folder or store; default: the training graph.")]
Transfer = Annotated[bool, typer.Option("--transfer", help="Allow a graph that the checkpoint never saw.")]
Overrides = Annotated[
    list[str] | None, typer.Option("--set", help="A config override such as parts/texts=exact; repeatable.")
]


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


Format = Annotated[Form, typer.Option("--format", help="How it is printed.")]


@app.command()
def ask(
    words: Annotated[
        list[str],
        typer.Argument(metavar="[IMAGE] QUESTION", help="A picture file, if any, and the question."),
    ],
    ckpt: Checkpoint = Path("best"),
    graph: Graph = None,
    start: Annotated[str | None, typer.Option(help="The start entity's id, where it is known.")] = None,
    transfer: Transfer = False,
    overrides: Overrides = None,
    as_json: Json = False,
) -> None:
    """Answer one question, with the path, the scores and the seconds.

    vispath ask flag.jpg "What money do people use in the country whose flag is shown?"

    vispath ask "What is the capital of the country that France borders to the south?"
    """
    from vispath_lit.launch.predictor import VisPath

    if len(words) > 2:
        raise typer.BadParameter("give one picture (or none) and one question in quotes")
    image = words[0] if len(words) == 2 else None
    vispath = VisPath.from_checkpoint(ckpt, graph=graph, transfer=transfer, overrides=overrides or ())
    answer = vispath.ask(words[-1], image=image, start=start)
    if as_json:
        print(json.dumps(answer.to_dict(), ensure_ascii=False))
        return
    answered = _plain(answer.text) or "(no answer)"
    out.print(f"[bold]{answered}[/]   confidence {answer.confidence:.2f}, {answer.provenance}")
    for path in answer.paths:
        out.print(f"  {path.score:7.3f}  {_plain(str(path))}")
    out.print(f"  {answer.seconds:.2f} s", style="dim")


@app.command()
def predict(
    questions: Annotated[Path, typer.Argument(help="JSON Lines, with or without answers.")],
    out_file: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write one JSON line a question.")],
    ckpt: Checkpoint = Path("best"),
    graph: Graph = None,
    transfer: Transfer = False,
    overrides: Overrides = None,
) -> None:
    """Answer a file of questions, in order."""
    from vispath_lit.data.questions import read_questions
    from vispath_lit.launch.predictor import VisPath

    if out_file.is_dir() or not out_file.absolute().parent.is_dir():
        raise DataError(f"{out_file}: cannot be written; name a file in a folder that exists")
    asked = read_questions(questions)
    vispath = VisPath.from_checkpoint(ckpt, graph=graph, transfer=transfer, overrides=overrides or ())
    partial = out_file.with_name(f".{out_file.name}.part")
    try:
        with partial.open("w", encoding="utf8") as file:
            for question, answer in zip(asked, vispath.predict(asked), strict=True):
                line = {"question_id": question.id, "question": question.text, **answer.to_dict()}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        partial.replace(out_file)
    finally:
        partial.unlink(missing_ok=True)
    out.print(f"{len(asked)} answers in {out_file}", markup=False, highlight=False)


@kg_app.command("build")
def kg_build(
    folder: Annotated[Path, typer.Argument(help="Holds triples.tsv, entities.tsv and relations.tsv.")],
    store: Annotated[Path, typer.Argument(metavar="OUT", help="The store to write.")],
    on_error: Annotated[OnError, typer.Option(help="fail at the first bad line, or skip them.")] = "fail",
    as_json: Json = False,
) -> None:
    """Build a memory-mapped store from a graph folder."""
    from vispath_lit.kg.build import build

    built = build(folder, store, on_error=on_error)
    if as_json:
        print(json.dumps(built.as_dict(), ensure_ascii=False))
    else:
        out.print(built.as_dict())


@kg_app.command("stats")
def kg_stats(store: Annotated[Path, typer.Argument(help="A built store.")], as_json: Json = False) -> None:
    """Count entities, triples, relations, types, pictures and degrees."""
    from vispath_lit.kg.stats import statistics, table
    from vispath_lit.kg.store import KnowledgeGraph

    found = statistics(KnowledgeGraph.open(store))
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        out.print(table(found))


@kg_app.command("search")
def kg_search(
    store: Annotated[Path, typer.Argument(help="A built store, or a graph folder.")],
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="Names as people write them.")],
    k: Annotated[int, typer.Option("-k", help="Entities a name, at most.", min=1, max=1000)] = 10,
    exact: Annotated[
        bool, typer.Option("--exact", help="Only these very names; nothing is embedded.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Find entities by label or alias: the very name first, then the nearest ones.

    The first search of a graph embeds its names; later ones, also of a grown graph, take them over.
    """
    from vispath_lit.encoders.minilm import MiniLM
    from vispath_lit.kg.cached import store_of
    from vispath_lit.kg.names import NameIndex
    from vispath_lit.kg.store import KnowledgeGraph
    from vispath_lit.launch.config import cache_dir

    cache = Path(cache_dir())
    graph = KnowledgeGraph.open(store_of(store, cache))
    index = NameIndex(graph, None if exact else MiniLM(cache), cache, aliases=True)
    found = [index.bearers(name)[:k] for name in names] if exact else index.find(names, k)
    for name, matches in zip(names, found, strict=True):
        ids, labels = ([read(m.entity) for m in matches] for read in (graph.entity_id, graph.label))
        if as_json:
            lines = [
                {"entity": i, "label": label, "name": m.name, "score": round(m.score, 4)}
                for i, label, m in zip(ids, labels, matches, strict=True)
            ]
            print(json.dumps({"asked": name, "found": lines}, ensure_ascii=False))
            continue
        out.print(f"[bold]{_plain(name)}[/]" + ("" if matches else "   (nothing of that name)"))
        for i, label, m in zip(ids, labels, matches, strict=True):
            by = "" if m.name == label else f"   by {_plain(m.name)}"
            out.print(f"  {m.score:6.3f}  {_plain(i)}  {_plain(label)}{by}")


@data_app.command("atlas")
def data_atlas(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Where graph, store and questions go.")],
    as_json: Json = False,
    workers: Annotated[int | None, typer.Option(help="Processes; default one a core.")] = None,
) -> None:
    """Build Atlas, the embedded graph and its questions, and print their statistics."""
    from vispath_lit.data.atlas.build import build_atlas
    from vispath_lit.data.atlas.questions.statistics import statistics_table

    found = build_atlas(folder, workers=workers)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        out.print({key: value for key, value in found["graph"].items() if not isinstance(value, dict)})
        out.print(statistics_table(found["questions"]["splits"]))


@data_app.command("bench")
def data_bench(
    graph: Annotated[Path, typer.Argument(help="A graph folder or a built store, with reference images.")],
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Where store and questions go.")],
    questions: Annotated[int, typer.Option("-n", "--questions", help="In all, at most.", min=1)] = 2000,
    hops: Annotated[str, typer.Option(help="Weights by number of hops.")] = "2:500,3:1200,4:300",
    relations: Annotated[
        Path | None, typer.Option(help="A TOML file of phrases for relations, types and the start.")
    ] = None,
    starts: Annotated[int, typer.Option(help="Entities that are looked at, at most.", min=1)] = 8000,
    repeat: Annotated[bool, typer.Option("--repeat", help="A relation may come twice on a path.")] = False,
    seed: Annotated[int, typer.Option(help="Of everything that is chosen.", min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Make multi-hop questions about pictures on any graph, as VisPath-Bench was made.

    vispath data bench MYGRAPH bench

    python train.py data=custom data.graph=bench/store data.questions=bench/questions
    """
    from vispath_lit.data.bench.gold import BenchPlan, parse_hops
    from vispath_lit.data.bench.make import make_bench
    from vispath_lit.data.bench.phrases import read_phrases
    from vispath_lit.data.bench.statistics import table_one
    from vispath_lit.evaluation.charts import alone
    from vispath_lit.evaluation.lengths import length_chart
    from vispath_lit.kg.cached import store_of
    from vispath_lit.kg.store import KnowledgeGraph
    from vispath_lit.launch.config import cache_dir

    plan = BenchPlan(questions, parse_hops(hops), starts, repeat=repeat, seed=seed)
    opened = KnowledgeGraph.open(store_of(graph, cache_dir()))
    phrases = None if relations is None else read_phrases(relations, opened)
    found = make_bench(opened, folder, plan, phrases)
    chart = length_chart(found["all"]["question_lengths"])
    (folder / "question_lengths.svg").write_text(alone(chart), encoding="utf8")
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    out.print(table_one({**found["splits"], "all": found["all"]}))
    for count, wanted in found["wanted"].items():
        if (got := found["all"]["hops"].get(count, 0)) < wanted:
            out.print(f"{got} of {wanted} questions of {count} hops: the graph has no more under the caps")
    if told := found["left_out"]["named_start_or_answer"]:
        out.print(f"{told} questions are left out: their words would name start or answer")
    own = found["all"]["own_picture_in_graph"]
    out.print(f"{own} questions show their start's only picture, which stays in the graph")


@data_app.command("show")
def data_show(
    questions: Annotated[Path, typer.Argument(help="A question file.")],
    store: Annotated[Path, typer.Argument(help="The store that its paths walk.")],
    html: Annotated[Path, typer.Argument(metavar="OUT", help="The page to write.")],
    n: Annotated[int, typer.Option(help="How many.", min=1)] = 30,
    seed: Annotated[int, typer.Option(help="Which ones.", min=0)] = 0,
) -> None:
    """Write a page of random questions with picture and gold path."""
    from vispath_lit.data.questions import read_questions
    from vispath_lit.data.show import show
    from vispath_lit.kg.store import KnowledgeGraph

    show(read_questions(questions), KnowledgeGraph.open(store), html, n=n, seed=seed)
    out.print(f"wrote {html}", markup=False, highlight=False)


@app.command()
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
    from vispath_lit.progress import console

    quiet()
    place = folder or Path("outputs") / "ablate" / time.strftime("%Y-%m-%d_%H-%M-%S")
    try:
        found = run_all(place, overrides or (), only=only or (), ckpt=ckpt, choice=choice)
    except KeyboardInterrupt:
        console.print(f"the same command with --out {place} goes on", highlight=False, soft_wrap=True)
        raise
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
    if any(note.startswith("failed") for note in found["notes"].values()):
        raise typer.Exit(1)


@report_app.command("show")
def report_run(
    run: Annotated[Path, typer.Argument(help="A run folder.")] = Path("outputs/latest"),
    markdown: Annotated[bool, typer.Option("--markdown", help="Every metric with intervals.")] = False,
    as_json: Json = False,
) -> None:
    """Print the tables of a run again."""
    from vispath_lit.evaluation.tables import markdown as as_markdown
    from vispath_lit.evaluation.tables import table
    from vispath_lit.launch.record import read_metrics

    metrics = read_metrics(run)
    if as_json:
        print(json.dumps(metrics, ensure_ascii=False))
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
    from vispath_lit.evaluation.paper import comparison_sheet
    from vispath_lit.evaluation.sheets import WRITERS, write_sheet
    from vispath_lit.launch.paper_tables import read_runs
    from vispath_lit.launch.testing import PROTOCOLS

    protocol = "" if given is Given.nothing else PROTOCOLS[given.value]
    sheet = comparison_sheet(read_runs(runs), metric, protocol)
    if out_folder is not None:
        write_sheet(sheet, out_folder, "comparison")
    print(WRITERS[form.value](sheet), end="")


@report_app.command("table")
def report_table(
    kind: Annotated[str, typer.Argument(help="main, backbones, grounding, ablation, cost or beam.")],
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN...]", help="Run folders; none runs what is missing.")
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
    """
    from vispath_lit.evaluation.sheets import WRITERS
    from vispath_lit.launch.main import quiet
    from vispath_lit.launch.paper_tables import make_table

    quiet()
    sheet = make_table(kind, runs or (), out_folder, overrides or (), vary or (), metric)
    print(WRITERS[form.value](sheet), end="")


def _plain(text: str) -> str:
    """Text from the data on one line, its markup and control characters made harmless."""
    from rich.markup import escape

    from vispath_lit.progress import printable

    return escape(printable(text).replace("\n", " "))


def main() -> None:
    """Runs the command line: exit code 1 for a user's data, 2 for usage, never a traceback for either."""
    with mended():
        app()


if __name__ == "__main__":
    main()
