"""`vispath data atlas | bench | show`: make questions over a graph and look at them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from vispath_lit.commands.options import Json
from vispath_lit.commands.printing import out, print_json

data_app = typer.Typer(help="Build the embedded data and look at questions.", no_args_is_help=True)


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
        print_json(found)
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
    from vispath_lit.evaluation.files import write_text
    from vispath_lit.evaluation.lengths import length_chart
    from vispath_lit.kg.cached import store_of
    from vispath_lit.kg.store import KnowledgeGraph
    from vispath_lit.launch.config import cache_dir

    plan = BenchPlan(questions, parse_hops(hops), starts, repeat=repeat, seed=seed)
    opened = KnowledgeGraph.open(store_of(graph, cache_dir()))
    phrases = None if relations is None else read_phrases(relations, opened)
    found = make_bench(opened, folder, plan, phrases)
    chart = length_chart(found["all"]["question_lengths"])
    write_text(folder / "question_lengths.svg", alone(chart))
    if as_json:
        print_json(found)
        return
    out.print(table_one({**found["splits"], "all": found["all"]}))
    for line in _caveats(found):
        out.print(line)


def _caveats(found: Mapping[str, Any]) -> Iterator[str]:
    """What the counts of a bench do not say by themselves."""
    for count, wanted in found["wanted"].items():
        if (got := found["all"]["hops"].get(count, 0)) < wanted:
            yield f"{got} of {wanted} questions of {count} hops: the graph has no more under the caps"
    if told := found["left_out"]["named_start_or_answer"]:
        yield f"{told} questions are left out: their words would name start or answer"
    own = found["all"]["own_picture_in_graph"]
    yield f"{own} questions show their start's only picture, which stays in the graph"


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
