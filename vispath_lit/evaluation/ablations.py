"""The table of ablations: Hits@1 per hop of each system that lacks something, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from vispath_lit.evaluation.comparison import compare
from vispath_lit.evaluation.records import Record
from vispath_lit.evaluation.summary import Table, averages, by_hop
from vispath_lit.evaluation.tables import PROTOCOLS, interval, p_value, percent
from vispath_lit.progress import printable

METRIC = "hits@1"


def ablation_table(
    full: Sequence[Record], without: Mapping[str, Sequence[Record]], *, seed: int = 0
) -> Table:
    """`{"questions", "full": {"overall", "by_hop"}, "without": {name: the same and "comparison"}}`.

    The comparison is `without - full` on the same questions, paired and clustered by start entity.

    Raises:
        DataError: two runs answered different questions.
    """
    return {
        "questions": len(full),
        "full": _averages(full),
        "without": {
            name: _averages(records) | {"comparison": compare(records, full, seed=seed)}
            for name, records in without.items()
        },
    }


def lines(found: Mapping[str, Any]) -> list[list[str]]:
    """Head and rows in percent: name, Hits@1 per hop and overall, change with its interval, p."""
    hops = list(found["full"]["by_hop"])
    head = ["without", *(f"{hop} hops" for hop in hops), "all", "change [95 %]", "p"]
    rows = [["(full system)", *_values(found["full"], hops), "", ""]]
    for name, row in found["without"].items():
        change = row["comparison"]["overall"].get(METRIC, {})
        shown = f"{percent(change.get('difference'), sign=True)} " + interval(
            change.get("low"), change.get("high"), sign=True
        )
        rows.append([name, *_values(row, hops), shown.strip(), p_value(change.get("p"))])
    return [head, *rows]


def markdown(tables: Mapping[str, Any], notes: Mapping[str, str]) -> str:
    """One table a protocol, then what was not run and why."""
    parts = []
    for protocol, found in tables.items():
        head, *rows = lines(found)
        parts.append(f"Hits@1 in percent, {_words(protocol)}{found['questions']} questions, one seed each\n")
        parts.append(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
        parts += [f"| {' | '.join(row)} |" for row in rows]
        parts.append("")
    parts += [f"- {name}: {note}" for name, note in notes.items()]
    return "\n".join(parts).rstrip("\n") + "\n"


def rich_table(protocol: str, found: Mapping[str, Any]) -> RichTable:
    """The same for a terminal."""
    head, *rows = lines(found)
    made = RichTable(
        title=Text(f"Hits@1 in percent, {_words(protocol)}{found['questions']} questions"),
        title_justify="left",
        header_style="bold",
    )
    for number, name in enumerate(head):
        made.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*(Text(printable(cell)) for cell in row))
    return made


def _averages(records: Sequence[Record]) -> Table:
    return {
        "overall": averages(records),
        "by_hop": {hop: averages(part) for hop, part in by_hop(records).items()},
    }


def _values(row: Mapping[str, Any], hops: Sequence[str]) -> list[str]:
    return [
        *(percent(row["by_hop"].get(hop, {}).get(METRIC)) for hop in hops),
        percent(row["overall"].get(METRIC)),
    ]


def _words(protocol: str) -> str:
    words = PROTOCOLS.get(protocol, "")
    return f"{words}, " if words else ""
