"""The paper's tables over any runs: main (II), backbones (III, IV), grounding (V), ablation (VI), cost (VII),
and the beam's settings (Figure 4); and any runs beside each other.

A run is one system on one split; under a protocol it has its own averages and intervals. Text-only rivals are
shown with the start given, as in the paper, and the row says so; EmbedKGQA is shown both ways.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vispath_lit.errors import DataError
from vispath_lit.evaluation import published
from vispath_lit.evaluation.comparison import compare
from vispath_lit.evaluation.records import Record, read_records
from vispath_lit.evaluation.sheets import Line, Sheet
from vispath_lit.evaluation.tables import NAMES, PROTOCOLS, interval, p_value, percent

# Systems that read no picture of the question: their rows give the start, where the run has that table.
TEXT_ONLY = ("ThinkOnGraph", "PathsOverGraph", "MindMap")
BOTH_WAYS = ("EmbedKGQA",)
NO_ENDS = (None, None)  # of an interval, where a run has none
TOKENS = "tokens, pictures included"
SETTINGS = {"m1": "M1", "m3": "M3", "d_max": "D_max"}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A finished run folder.

    Attributes:
        label: what the tables call it.
        config: its `config.yaml` as plain containers.
        metrics: its `metrics.json`.
    """

    folder: Path
    label: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The name of the system's class."""
        return str(self.setting("system._target_") or "").rpartition(".")[2]

    @property
    def data(self) -> str:
        return f"{self.metrics['data']} {self.metrics['split']}"

    def setting(self, key: str) -> Any:
        """A value of the config by its dotted key; None where there is none."""
        node: Any = self.config
        for name in key.split("."):
            node = node.get(name) if isinstance(node, Mapping) else None
        return node

    def table(self, protocol: str) -> Mapping[str, Any] | None:
        """The tables of a protocol, None where it was not asked; `""` is nothing given."""
        if not protocol and self.main:
            return None
        return self.metrics.get(protocol) if protocol else self.metrics

    @property
    def main(self) -> str:
        """The protocol of its main table; `""` is nothing given."""
        return str(self.metrics.get("main", ""))

    @property
    def name(self) -> str:
        """Its label, and what its main table grants."""
        return ", ".join([self.label, *([PROTOCOLS[self.main]] if self.main else [])])

    def protocols(self) -> list[str]:
        """What the main table shows of it."""
        if self.main:
            return [self.main]
        given = "given_start" in self.metrics
        if self.kind in TEXT_ONLY and given:
            return ["given_start"]
        return ["", "given_start"] if self.kind in BOTH_WAYS and given else [""]

    def records(self, protocol: str) -> list[Record]:
        """Its predictions under a protocol.

        Raises:
            DataError: it has none.
        """
        file = self.folder / (f"predictions.{protocol}.jsonl" if protocol else "predictions.jsonl")
        if self.table(protocol) is None or not file.is_file():  # A file may be an earlier run's.
            words = PROTOCOLS.get(protocol) or "nothing given"
            raise DataError(f"{file}: the run was not tested with {words}; name another protocol or run")
        return read_records(file)


def main_sheet(runs: Sequence[Run], metric: str = "sbert@0.3") -> Sheet:
    """Table II: one metric by hops and in all, with the paper's figures where the data set is its own."""
    hops = _hops(runs)
    lines = []
    for run, protocol, table in _rows(runs):
        words = [run.label, *([PROTOCOLS[protocol]] if protocol else [])]
        lines.append(Line((", ".join(words), _questions(table), *_by_hop(table, hops, metric))))
    theirs = _theirs(runs) if metric == "sbert@0.3" else {}
    for method, values in theirs.items():
        shown = [_published(values.get(key)) for key in (*hops, "all")]
        lines.append(Line((f"{method}, as published", "", *shown), published=True))
    chance = [run.metrics["overall"].get("sbert@0.3_chance") for run in runs]
    notes = [f"{NAMES.get(metric, metric)} in percent, with 95 % intervals clustered by start entity."]
    if metric == "sbert@0.3" and chance[0] is not None:
        notes.append(f"Another question's answer would count as right for {percent(chance[0])} %.")
    if any(run.kind in TEXT_ONLY for run in runs):
        notes.append("Text-only multi-hop systems get the gold start entity, as in the paper.")
    return Sheet(
        f"Main results on {_data(runs)}",
        ("system", "questions", *(f"{hop} hops" for hop in hops), "all [95 %]"),
        tuple(lines),
        (*notes, *_limits(runs)),
    )


def backbones_sheet(runs: Sequence[Run], metric: str = "sbert@0.3") -> Sheet:
    """Tables III and IV: the same system with other language or vision models."""
    hops = _hops(runs)
    lines = [
        Line((run.name, _text_model(run), _vision_model(run), *_by_hop(run.metrics, hops, metric)))
        for run in runs
    ]
    return Sheet(
        f"Backbones on {_data(runs)}",
        ("system", "text model", "vision model", *(f"{hop} hops" for hop in hops), "all [95 %]"),
        tuple(lines),
        (f"{NAMES.get(metric, metric)} in percent.", *_limits(runs)),
    )


def grounding_sheet(runs: Sequence[Run]) -> Sheet:
    """Table V: right start entities.

    Raises:
        DataError: a run that found none, as its starts were given.
    """
    lines = []
    for run in runs:
        if run.main:
            raise DataError(f"{run.folder}: its starts were given; test it with given=[nothing]")
        found = run.metrics["grounding"]
        checked = "yes" if run.setting("parts.search.validation") else "no"
        ends = run.metrics["intervals"]["overall"]
        shown = [
            f"{percent(found.get(key))} {interval(*ends.get(f'grounding_{key}', NO_ENDS))}".strip()
            for key in ("strict", "soft", "recall@5")
        ]
        grounder = str(run.setting("parts.grounder._target_") or "").rpartition(".")[2]
        lines.append(Line((run.label, grounder, checked, *shown)))
    if {published.known(str(run.metrics["data"])) for run in runs} == {"reasonvqa"}:
        for method, (strict, soft) in published.GROUNDING.items():
            cells = (f"{method}, as published", "", "", _published(strict), _published(soft), "")
            lines.append(Line(cells, published=True))
    return Sheet(
        f"Start entities on {_data(runs)}",
        ("system", "grounder", "validated", "strict [95 %]", "soft [95 %]", "among five [95 %]"),
        tuple(lines),
        (
            "In percent, with 95 % intervals clustered by start entity.",
            "Soft also accepts a label whose cosine with the gold label is at least 0.7.",
            *_limits(runs),
        ),
    )


def ablation_sheet(
    runs: Sequence[Run], metric: str = "sbert@0.3", protocol: str = "", seed: int = 0
) -> Sheet:
    """Table VI: the first run is the full system, each other one lacks something.

    Args:
        protocol: `""` is that of the first run's main table.
    """
    sheet = comparison_sheet(runs, metric, protocol or runs[0].main, seed)
    lines = list(sheet.lines)
    if {published.known(str(run.metrics["data"])) for run in runs} == {
        "vispath_bench"
    } and metric == "sbert@0.3":
        lines += _published_ablations(_hops(runs))
    title = f"Ablations on {_data(runs)}"
    return Sheet(title, sheet.columns, tuple(lines), ("The first row is the full system.", *sheet.notes))


def _published_ablations(hops: Sequence[str]) -> Iterator[Line]:
    """The paper's rows of Table VI, each with its change of the average where the text tells it."""
    full = published.ABLATION["full system"]
    for name, values in published.ABLATION.items():
        shown = [_published(values.get(key)) for key in (*hops, "all")]
        told = "all" in values and values is not full
        change = f"{values['all'] - full['all']:+.1f}" if told else ""
        yield Line((f"{name}, as published", "", *shown, change, ""), published=True)


def cost_sheet(runs: Sequence[Run]) -> Sheet:
    """Table VII: what a question costs; no back end tells a prompt's text tokens from its pictures'."""
    lines = []
    for run, protocol, table in _rows(runs):
        cost = table["cost"]
        name = ", ".join([run.label, *([PROTOCOLS[protocol]] if protocol else [])])
        counts = [f"{cost[key]:.1f}" for key in ("llm_calls", "vlm_calls")]
        counts.append(f"{cost['vlm_forwards']:.1f}" if "vlm_forwards" in cost else "")
        memory = f"{table['memory']['peak_rss_mb'] / 1024:.1f}"
        lines.append(Line((name, *counts, f"{cost['text_tokens']:.0f}", f"{cost['seconds']:.3f}", memory)))
    for method, (llm, vlm, tokens) in published.COST.items():
        cells = (f"{method}, as published", f"{llm:.1f}", f"{vlm:.1f}", "", f"{tokens:.0f}", "", "")
        lines.append(Line(cells, published=True))
    return Sheet(
        f"Cost a question on {_data(runs)}",
        ("system", "LLM calls", "VLM calls", "VLM forwards", TOKENS, "seconds", "peak GB"),
        tuple(lines),
        (
            "Measured means; the published row is of VisPath-Bench, without seconds, and its tokens are of "
            "text alone: ours are all that the models count, pictures included.",
            "A call writes an answer, a forward is the reading of question and picture by the backbone of "
            "learned parts: at most one a question, and so at most one a hop.",
            *_limits(runs),
        ),
    )


def beam_sheet(runs: Sequence[Run], metric: str = "sbert@0.3") -> Sheet:
    """Figure 4: one line a value of M1, M3 or D_max, the others being those of the first run."""
    lines = []
    first = {key: runs[0].setting(f"parts.search.{key}") for key in SETTINGS}
    for key, name in SETTINGS.items():
        others = [other for other in SETTINGS if other != key]
        same = [r for r in runs if all(r.setting(f"parts.search.{o}") == first[o] for o in others)]
        by_value = {run.setting(f"parts.search.{key}"): run for run in same}
        for value in sorted(v for v in by_value if isinstance(v, int)):
            cell = _overall(by_value[value].metrics, metric)
            path = percent(by_value[value].metrics["overall"].get("path_hit@3"))
            lines.append(Line((f"{name} = {value}", "yes" if value == first[key] else "", cell, path)))
    if not lines:
        raise DataError("none of the runs searches with M1, M3 and D_max; name runs of VisPath")
    return Sheet(
        f"Search settings on {_data(runs)}",
        ("setting", "default", f"{NAMES.get(metric, metric)} [95 %]", NAMES["path_hit@3"]),
        tuple(lines),
        (
            "In percent, all questions; the other settings are those of the first run.",
            *([f"{PROTOCOLS[runs[0].main].capitalize()}."] if runs[0].main else []),
            *_limits(runs),
        ),
    )


def comparison_sheet(
    runs: Sequence[Run], metric: str = "sbert@0.3", protocol: str = "", seed: int = 0
) -> Sheet:
    """Any runs on the same questions, each against the first: the difference, paired, clustered by start.

    Raises:
        DataError: other questions, or a run without this protocol or metric.
    """
    hops = _hops(runs)
    base = runs[0].records(protocol)
    lines = []
    for run in runs:
        table = run.table(protocol)
        if table is None or metric not in NAMES or metric not in table["overall"]:
            given = PROTOCOLS.get(protocol) or "nothing given"
            known = [] if table is None else [name for name in NAMES if name in table["overall"]]
            raise DataError(f"{run.folder}: no {metric!r} with {given}; it has {', '.join(known) or 'none'}")
        change = ("", "")
        if run is not runs[0]:
            row = compare(run.records(protocol), base, seed=seed)["overall"]
            assert isinstance(row, dict)
            found = row[metric]
            span = interval(found["low"], found["high"], sign=True)
            change = (f"{percent(found['difference'], sign=True)} {span}".strip(), p_value(found["p"]))
        lines.append(Line((run.label, _questions(table), *_by_hop(table, hops, metric), *change)))
    words = PROTOCOLS.get(protocol)
    return Sheet(
        f"Runs on {_data(runs)}" + (f", {words}" if words else ""),
        ("run", "questions", *(f"{hop} hops" for hop in hops), "all [95 %]", "change [95 %]", "p"),
        tuple(lines),
        (f"{NAMES.get(metric, metric)} in percent; changes against the first row, paired, by start entity.",),
    )


def _rows(runs: Sequence[Run]) -> Iterator[tuple[Run, str, Mapping[str, Any]]]:
    for run in runs:
        for protocol in run.protocols():
            table = run.table(protocol)
            if table is not None:
                yield run, protocol, table


def _hops(runs: Sequence[Run]) -> list[str]:
    found = {hop for run in runs for hop in run.metrics["by_hop"]}
    return sorted(found, key=lambda hop: (not hop.isdigit(), int(hop) if hop.isdigit() else 0, hop))


def _by_hop(table: Mapping[str, Any], hops: Sequence[str], metric: str) -> list[str]:
    cells = [percent(table["by_hop"].get(hop, {}).get(metric)) for hop in hops]
    return [*cells, _overall(table, metric)]


def _overall(table: Mapping[str, Any], metric: str) -> str:
    low, high = table["intervals"]["overall"].get(metric, NO_ENDS)
    return f"{percent(table['overall'].get(metric))} {interval(low, high)}".strip()


def _questions(table: Mapping[str, Any]) -> str:
    return str(table["overall"]["questions"])


def _data(runs: Sequence[Run]) -> str:
    return " and ".join(dict.fromkeys(run.data for run in runs))


def _theirs(runs: Sequence[Run]) -> dict[str, dict[str, float]]:
    names = {published.known(str(run.metrics["data"])) for run in runs}
    return published.main_rows(names.pop()) if len(names) == 1 else {}


def _published(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _limits(runs: Sequence[Run]) -> list[str]:
    """What readers must know: samples, and models that are too small for their step."""
    counts = {run.label: run.metrics["overall"]["questions"] for run in runs}
    most = max(counts.values())
    fewer = {label: count for label, count in counts.items() if count < most}
    return [f"{label} answered the first {count} questions only." for label, count in fewer.items()]


def _text_model(run: Run) -> str:
    return _name(run.setting("chat.model"))


def _vision_model(run: Run) -> str:
    if run.setting("chat.blind"):
        return "none"
    asked = run.setting("chat.vision_model") or run.setting("chat.model")
    return _name(asked) or _name(run.setting("parts.vlm.model"))


def _name(model: Any) -> str:
    """The last part of a model's name or path: whose disk it lies on is nobody's business."""
    return str(model).rstrip("/").rpartition("/")[2] if model else ""
