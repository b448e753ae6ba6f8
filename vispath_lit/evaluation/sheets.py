"""One table, written as Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from vispath_lit.errors import DataError
from vispath_lit.evaluation.files import write_text
from vispath_lit.progress import printable

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px system-ui, sans-serif; margin: 2em; }}
table {{ border-collapse: collapse; }}
th, td {{ padding: .3em .8em; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }}
tr.published {{ color: #666; }}
</style></head><body>
<h1>{title}</h1>
<table><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table>
{notes}
</body></html>
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One row of cells; `published` where they are another's figures and no run's."""

    cells: tuple[str, ...]
    published: bool = False


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table with its notes; the first column is text, the others are numbers.

    Raises:
        DataError: a line that has not a cell for each column.
    """

    title: str
    columns: tuple[str, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for line in self.lines:
            if len(line.cells) != len(self.columns):
                raise DataError(
                    f"a line of {len(line.cells)} cells in a table of {len(self.columns)} columns"
                )


def markdown(sheet: Sheet) -> str:
    """With the title in bold above and notes as a list below."""
    rows = [sheet.columns, *(line.cells for line in sheet.lines)]
    lines = ["| " + " | ".join(_one_line(cell).replace("|", r"\|") for cell in row) + " |" for row in rows]
    lines.insert(1, "|---|" + "---:|" * (len(sheet.columns) - 1))
    notes = [f"- {_one_line(note)}" for note in sheet.notes]
    return "\n".join([f"**{_one_line(sheet.title)}**", "", *lines, *([""] if notes else []), *notes]) + "\n"


def latex(sheet: Sheet) -> str:
    """A `table` that needs the package booktabs."""
    rows = [" & ".join(map(_tex, line.cells)) + r" \\" for line in sheet.lines]
    first = next((i for i, line in enumerate(sheet.lines) if line.published), 0)
    if first:
        rows.insert(first, r"\midrule")
    notes = r"\\ ".join(map(_tex, sheet.notes))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_tex(sheet.title)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(sheet.columns) - 1)}}}",
            r"\toprule",
            " & ".join(map(_tex, sheet.columns)) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            *([rf"\par\footnotesize {notes}"] if notes else []),
            r"\end{table}",
            "",
        ]
    )


def html(sheet: Sheet) -> str:
    """A page of its own that loads nothing."""

    def cells(row: Sequence[str], tag: str) -> str:
        return "".join(f"<{tag}>{escape(_one_line(cell))}</{tag}>" for cell in row)

    kinds = [' class="published"' if line.published else "" for line in sheet.lines]
    rows = [f"<tr{k}>{cells(line.cells, 'td')}</tr>" for k, line in zip(kinds, sheet.lines, strict=True)]
    notes = "".join(f"<p>{escape(_one_line(note))}</p>" for note in sheet.notes)
    title = escape(_one_line(sheet.title))
    return _PAGE.format(title=title, head=cells(sheet.columns, "th"), rows="\n".join(rows), notes=notes)


WRITERS = {"md": markdown, "tex": latex, "html": html}


def write_sheet(sheet: Sheet, folder: Path, name: str) -> list[Path]:
    """Writes `name.md`, `name.tex` and `name.html` into the folder."""
    files = []
    for ending, writer in WRITERS.items():
        files.append(folder / f"{name}.{ending}")
        write_text(files[-1], writer(sheet))
    return files


def _one_line(text: str) -> str:
    return " ".join(printable(text).split())


def _tex(text: str) -> str:
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))
