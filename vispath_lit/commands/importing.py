"""`vispath kg import FORMAT`: a command for each file of `kg/importers/`, its options the format's fields.

A format whose questions can be converted, too, has a file of its name in `data/importers/`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup

from vispath_lit.commands.options import ChosenEngine, Workers
from vispath_lit.commands.printing import out, print_json
from vispath_lit.engines.engine import EngineName, make_engine
from vispath_lit.errors import ConfigError
from vispath_lit.kg import importers
from vispath_lit.kg.faults import OnError
from vispath_lit.progress import console

CONVERTERS = "vispath_lit.data.importers"


def formats() -> list[str]:
    """The names of all formats."""
    return sorted(module.name for module in pkgutil.iter_modules(importers.__path__))


class _Formats(TyperGroup):
    """Imports a format's module only where its command is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return formats()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in formats():
            return None
        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        app.command(cmd_name)(command(cmd_name))
        return typer.main.get_command(app)


import_app = typer.Typer(cls=_Formats, no_args_is_help=True)


@import_app.callback()
def _import() -> None:
    """Import public data into a store or a graph folder.

    vispath kg import wikidata5m wikidata5m_alias.tar.gz wikidata5m_transductive.tar.gz data/wikidata5m

    Archives are read as they are. A stopped import goes on with the same command.
    """


def command(name: str) -> Callable[..., None]:
    """The command of a format; its parameters are the format's fields."""
    kind: Any = importlib.import_module(f"{importers.__name__}.{name}").Format
    converter = importlib.util.find_spec(f"{CONVERTERS}.{name}") is not None

    def run(**values: Any) -> None:
        options = {field.name: values[field.name] for field in fields(kind) if field.name in values}
        importer = kind(**{**options, "sources": tuple(options["sources"])})
        questions: Path | None = values.get("questions")
        try:
            _run(name, importer, values["out_path"], questions, values)
        except KeyboardInterrupt:
            console.print("the same command goes on", highlight=False)
            raise

    parameters = _parameters(kind)
    if converter:
        help = "Also write the questions, as JSON Lines, into this folder."
        parameters.append(_parameter("questions", Path | None, typer.Option(help=help), None))
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__doc__ = kind.__doc__
    return run


def _run(name: str, importer: Any, target: Path, questions: Path | None, values: dict[str, Any]) -> None:
    from vispath_lit.kg.staging.run import import_graph

    if questions is not None and values["folder"]:
        raise ConfigError("--questions are converted over a store: leave out --folder")
    engine, on_error = make_engine(values["engine"], values["workers"]), values["on_error"]
    report = import_graph(importer, target, as_folder=values["folder"], on_error=on_error, engine=engine)
    found: dict[str, Any] = report.as_dict()
    if questions is not None:
        convert = importlib.import_module(f"{CONVERTERS}.{name}").convert_questions
        found = {
            "graph": found,
            "questions": convert(importer, target, questions, on_error=on_error),
        }
    if values["as_json"]:
        print_json(found)
    else:
        out.print(found, markup=False)


def _parameters(kind: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(kind)
    found = [
        _parameter("sources", list[Path], typer.Argument(metavar="SOURCE...", help=_help(kind, "sources"))),
        _parameter("out_path", Path, typer.Argument(metavar="OUT", help="The store (or folder) to write.")),
    ]
    found += [
        _parameter(field.name, hints[field.name], typer.Option(help=field.metadata["help"]), field.default)
        for field in fields(kind)
        if field.name != "sources" and "help" in field.metadata
    ]
    fail = "fail at the first bad row, or skip such rows and count them."
    return [
        *found,
        _parameter("folder", bool, typer.Option("--folder", help="Write TSV files, not a store."), False),
        _parameter("on_error", OnError, typer.Option(help=fail), "fail"),
        _annotated("engine", ChosenEngine, EngineName.alone),
        _annotated("workers", Workers, None),
        _parameter("as_json", bool, typer.Option("--json", help="Print JSON for programs."), False),
    ]


def _help(kind: Any, name: str) -> str:
    field: Field[Any] = next(field for field in fields(kind) if field.name == name)
    return str(field.metadata["help"])


def _parameter(name: str, kind: Any, declared: Any, default: Any = MISSING) -> inspect.Parameter:
    return _annotated(name, Annotated[kind, declared], default)


def _annotated(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=annotation,
        default=inspect.Parameter.empty if default is MISSING else default,
    )
