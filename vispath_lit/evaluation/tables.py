"""The numbers of `metrics.json` for people: a compact table for the terminal, a full one in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from vispath_lit.progress import printable

HEADLINE = ("hits@1", "path_hit@3", "f1", "sbert@0.3")
NAMES = {
    "sbert@0.3": "SBERT@0.3",
    "exact_match": "exact match",
    "hits@1": "Hits@1",
    "f1": "F1",
    "answer_recall@3": "recall@3",
    "path_hit@3": "path-hit@3",
    "path_precision": "path precision",
    "path_recall": "path recall",
    "path_f1": "path F1",
    "vqa_accuracy": "VQA accuracy",
}
PROTOCOLS = {"": "", "given_start": "start given", "given_start_and_depth": "start and depth given"}
SIGNIFICANT = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric on one group of questions, with the fixed system's value where there is one.

    Attributes:
        low, high: 95 % interval of `value`.
        difference: `value - fixed`, with its paired interval and p-value.
    """

    metric: str
    value: float
    low: float | None
    high: float | None
    fixed: float | None
    difference: float | None
    difference_low: float | None
    difference_high: float | None
    p: float | None

    @property
    def significant(self) -> bool:
        """Whether the difference would come by luck in less than 1 % of the cases."""
        return self.p is not None and self.p < SIGNIFICANT


@dataclass(frozen=True, slots=True)
class Row:
    """One group of questions: a number of hops or all of them, under one protocol."""

    protocol: str
    group: str
    questions: int
    cells: tuple[Cell, ...]


def protocols(metrics: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(key, what it grants in words, table) of each protocol that `metrics` holds, the main one first.

    A main table that grants something stands under its own name, too, and comes once, under that.
    """
    for protocol, words in PROTOCOLS.items():
        table = metrics.get(protocol) if protocol else (None if "main" in metrics else metrics)
        if table is not None:
            yield protocol, words, table


def rows(metrics: Mapping[str, Any], names: Sequence[str] = HEADLINE) -> list[Row]:
    """One row for each number of hops and one for all, for each protocol that `metrics` holds.

    A metric that a group has no gold for has no cell.
    """
    found = []
    for protocol, words, table in protocols(metrics):
        fixed = metrics.get("fixed") or {}
        other = fixed.get(protocol, {}) if protocol else fixed
        for group, path in _groups(table):
            cells = [_cell(table, other, path, name) for name in names if name in _at(table, path)]
            found.append(Row(words, group, int(_at(table, path)["questions"]), tuple(cells)))
    return found


def table(metrics: Mapping[str, Any]) -> Group:
    """What a run ends with: a table a protocol, per hop, in percent; a star where p < 0.01."""
    found = rows(metrics)
    name = f"{metrics['system']} on {metrics['data']} {metrics['split']}"
    tables: list[RenderableType] = [
        _protocol_table(
            f"{name}, {words}" if words else name, [row for row in found if row.protocol == words]
        )
        for words in dict.fromkeys(row.protocol for row in found)
    ]
    compared = "fixed → trained, in percent; * p < 0.01 (paired bootstrap by start entity)"
    tables += [Text(line) for line in (*_own_scores(metrics), *_pairs(metrics))]
    return Group(*tables, Text(compared if "fixed" in metrics else "in percent", style="italic"))


def _own_scores(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A line a protocol of what a data set counts by a rule of its own."""
    for _, words, found in protocols(metrics):
        if "vqa_accuracy" not in found["overall"]:
            continue
        name = f"{NAMES['vqa_accuracy']}, {words}" if words else NAMES["vqa_accuracy"]
        line = f"{name}: {percent(found['overall']['vqa_accuracy'])}"
        if unseen := found.get("unseen"):
            values = [f"{name.replace('_', ' ')} {percent(value)}" for name, value in unseen.items()]
            line += f" ({', '.join(values)})"
        yield line


def _pairs(metrics: Mapping[str, Any]) -> Iterator[str]:
    """A line a protocol of how many pairs of questions are right in both."""
    for _, words, found in protocols(metrics):
        if pairs := found.get("pairs"):
            name = f"pairs right in both, {words}" if words else "pairs right in both"
            yield f"{name}: {percent(pairs['hits@1'])} of {pairs['pairs']}"


def _protocol_table(title: str, found: Sequence[Row]) -> Table:
    made = Table(title=Text(printable(title)), title_justify="left", header_style="bold")
    made.add_column("hops")
    made.add_column("n", justify="right")
    for name in HEADLINE:
        made.add_column(NAMES[name], justify="right", no_wrap=True)
    for row in found:
        cells = {cell.metric: _short(cell) for cell in row.cells}
        style = "bold" if row.group == "all" else None
        made.add_row(row.group, str(row.questions), *(cells.get(name, "") for name in HEADLINE), style=style)
    return made


def markdown(metrics: Mapping[str, Any], names: Sequence[str] = HEADLINE) -> str:
    """A row for each group and metric, with intervals and p-values."""
    lines = [
        "| hops | questions | metric | fixed | trained | difference | p |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in rows(metrics, names):
        group = f"{row.group}, {row.protocol}" if row.protocol else row.group
        for cell in row.cells:
            values = [
                group,
                str(row.questions),
                NAMES[cell.metric],
                percent(cell.fixed),
                f"{percent(cell.value)} {interval(cell.low, cell.high)}".strip(),
                f"{percent(cell.difference, sign=True)} "
                f"{interval(cell.difference_low, cell.difference_high, sign=True)}".strip(),
                p_value(cell.p),
            ]
            lines.append(f"| {' | '.join(values)} |")
    return "\n".join(lines) + "\n"


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share in percent with one decimal; empty for None."""
    if value is None:
        return ""
    return f"{100 * value:+.1f}" if sign else f"{100 * value:.1f}"


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """`[low, high]` in percent; empty where there is none."""
    if low is None or high is None:
        return ""
    return f"[{percent(low, sign=sign)}, {percent(high, sign=sign)}]"


def p_value(p: float | None) -> str:
    """Four decimals, `< 0.001` below that; empty for None."""
    if p is None:
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _short(cell: Cell) -> str:
    if cell.fixed is None:
        return percent(cell.value)
    return f"{percent(cell.fixed)} → {percent(cell.value)}{'*' if cell.significant else ' '}"


def _groups(table: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """(name, keys that lead to it) of each number of hops, then of all questions."""
    hops = sorted(table["by_hop"], key=lambda hop: (not hop.isdigit(), int(hop) if hop.isdigit() else 0))
    for hop in hops:
        yield hop, ("by_hop", hop)
    yield "all", ("overall",)


def _cell(table: Mapping[str, Any], fixed: Mapping[str, Any], path: Sequence[str], name: str) -> Cell:
    low, high = _at(table.get("intervals", {}), path).get(name, (None, None))
    compared = _at(table.get("comparison", {}), path).get(name, {})
    return Cell(
        metric=name,
        value=float(_at(table, path)[name]),
        low=low,
        high=high,
        fixed=_at(fixed, path).get(name),
        difference=compared.get("difference"),
        difference_low=compared.get("low"),
        difference_high=compared.get("high"),
        p=compared.get("p"),
    )


def _at(table: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    for key in path:
        table = table.get(key) or {}
    return table
