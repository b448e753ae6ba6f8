"""`vispath kg build | stats | search | embed | import`: make a graph store and look at it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vispath_lit.commands.importing import import_app
from vispath_lit.commands.options import ChosenEngine, Json, Workers
from vispath_lit.commands.printing import out, plain, print_json, readable
from vispath_lit.engines.engine import EngineName, make_engine
from vispath_lit.kg.faults import OnError

kg_app = typer.Typer(help="Build a graph store and look at it.", no_args_is_help=True)
kg_app.add_typer(import_app, name="import")


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
        print_json(built.as_dict())
    else:
        out.print(built.as_dict())


@kg_app.command("stats")
def kg_stats(store: Annotated[Path, typer.Argument(help="A built store.")], as_json: Json = False) -> None:
    """Count entities, triples, relations, types, pictures and degrees."""
    from vispath_lit.kg.stats import statistics, table
    from vispath_lit.kg.store import KnowledgeGraph

    found = statistics(KnowledgeGraph.open(store))
    if as_json:
        print_json(found)
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
    names = [readable(name) for name in names]
    found = [index.bearers(name)[:k] for name in names] if exact else index.find(names, k)
    for name, matches in zip(names, found, strict=True):
        ids, labels = ([read(m.entity) for m in matches] for read in (graph.entity_id, graph.label))
        if as_json:
            lines = [
                {"entity": i, "label": label, "name": m.name, "score": round(m.score, 4)}
                for i, label, m in zip(ids, labels, matches, strict=True)
            ]
            print_json({"asked": name, "found": lines})
            continue
        out.print(f"[bold]{plain(name)}[/]" + ("" if matches else "   (nothing of that name)"))
        for i, label, m in zip(ids, labels, matches, strict=True):
            by = "" if m.name == label else f"   by {plain(m.name)}"
            out.print(f"  {m.score:6.3f}  {plain(i)}  {plain(label)}{by}")


@kg_app.command("embed")
def kg_embed(
    store: Annotated[Path, typer.Argument(help="A built store, or a graph folder.")],
    questions: Annotated[
        list[Path] | None, typer.Option(help="A question file whose words are embedded, too; repeatable.")
    ] = None,
    images: Annotated[bool, typer.Option("--images", help="The reference images, too.")] = False,
    engine: ChosenEngine = EngineName.alone,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Embed names, relations and more beforehand: trainings and searches find them in the cache.

    vispath kg embed data/atlas/store --questions data/atlas/questions/train.jsonl --images
    """
    from vispath_lit.kg.cached import store_of
    from vispath_lit.kg.store import KnowledgeGraph
    from vispath_lit.launch.config import cache_dir
    from vispath_lit.launch.embedding import embed

    chosen = make_engine(engine, workers)
    cache = Path(cache_dir())
    found = embed(KnowledgeGraph.open(store_of(store, cache)), cache, questions or (), images, chosen)
    if as_json:
        print_json(found)
    else:
        out.print(found)
