"""`vispath ask | predict`: a question, or a file of them, through a trained system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from vispath_lit.commands.options import Checkpoint, Graph, Json, Overrides, Transfer
from vispath_lit.commands.printing import out, plain, print_json, readable
from vispath_lit.errors import DataError
from vispath_lit.whole import whole_file


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
    answer = vispath.ask(readable(words[-1]), image=image, start=start)
    if as_json:
        print_json(answer.to_dict())
        return
    answered = plain(answer.text) or "(no answer)"
    out.print(f"[bold]{answered}[/]   confidence {answer.confidence:.2f}, {answer.provenance}")
    for path in answer.paths:
        out.print(f"  {path.score:7.3f}  {plain(str(path))}")
    out.print(f"  {answer.seconds:.2f} s", style="dim")


def predict(
    questions: Annotated[Path, typer.Argument(help="JSON Lines, with or without answers.")],
    out_file: Annotated[Path, typer.Argument(metavar="OUT", help="Where to write one JSON line a question.")],
    ckpt: Checkpoint = Path("best"),
    graph: Graph = None,
    transfer: Transfer = False,
    overrides: Overrides = None,
) -> None:
    """Answer a file of questions, in order; one that cannot be asked is `failed`, its statement says why."""
    from vispath_lit.data.questions import read_questions
    from vispath_lit.launch.predictor import VisPath

    if out_file.is_dir() or not out_file.absolute().parent.is_dir():
        raise DataError(f"{out_file}: cannot be written; name a file in a folder that exists")
    asked = read_questions(questions)
    vispath = VisPath.from_checkpoint(ckpt, graph=graph, transfer=transfer, overrides=overrides or ())
    failed = 0
    # As in the evaluator: a model's words may hold half a character, which no file can.
    with (
        whole_file(out_file) as partial,
        partial.open("w", encoding="utf8", errors="replace", newline="\n") as file,
    ):
        for question, answer in zip(asked, vispath.predict(asked), strict=True):
            line = {"question_id": question.id, "question": question.text, **answer.to_dict()}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
            failed += answer.provenance == "failed"
    told = f", {failed} of them failed: their statement says why" if failed else ""
    out.print(f"{len(asked)} answers in {out_file}{told}", markup=False, highlight=False)
