"""`report.html`: tables, charts and twenty questions with everything the search did; one file, no network.

All text of data and models is escaped by the template; pictures are decoded, made small and written anew as
JPEG, so that nothing of a file but its pixels enters the page.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from vispath_lit.errors import DataError
from vispath_lit.evaluation import charts, tables
from vispath_lit.evaluation.files import write_text
from vispath_lit.evaluation.pruning import CUTS
from vispath_lit.evaluation.records import Record, Walk
from vispath_lit.kg.images import load_image
from vispath_lit.types import Question

SHOWN = 20
PICTURE = 288
GROUPS = {
    (True, False): "gained: right, fixed wrong",
    (False, True): "lost: wrong, fixed right",
    (True, True): "both right",
    (False, False): "both wrong",
    (True, None): "right",
    (False, None): "wrong",
}
CUT_WORDS = {
    "start": "start not found",
    "edges": "edge score",
    "chains": "chain score",
    "beam": "beam",
    "stopped": "stopped too early",
    "kept": "kept",
    "untraced": "not told",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One question on the page. `picture` is a data URI; `trouble` says why there is none."""

    group: str
    systems: tuple[tuple[str, Record], ...]
    picture: str
    trouble: str

    @property
    def record(self) -> Record:
        return self.systems[0][1]

    @property
    def gold_steps(self) -> frozenset[tuple[str, str, str]]:
        """The edges of the gold paths, to be marked wherever they appear."""
        return frozenset(step for walk in self.record.gold.paths for step in steps(walk))


def write_report(
    path: Path,
    metrics: Mapping[str, Any],
    records: Sequence[Record],
    questions: Sequence[Question],
    *,
    fixed: Sequence[Record] = (),
    seed: int = 0,
    shown: int = SHOWN,
) -> None:
    """Writes the page.

    Args:
        path: the HTML file.
        metrics: the content of `metrics.json`.
        records: of the system itself, under its main protocol.
        questions: for their pictures, looked up by id; a question that is missing is shown without one.
        fixed: records of the fixed system on the same questions, where it was run.
        seed: which questions are drawn.
        shown: how many.
    """
    pictures = {question.id: question.image for question in questions}
    other = {record.id: record for record in fixed}
    drawn = sample(records, other, shown=shown, seed=seed)
    environment = Environment(
        loader=PackageLoader("vispath_lit.evaluation", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": tables.percent, "interval": tables.interval, "p_value": tables.p_value}
    page = environment.get_template("report.html.jinja").render(
        metrics=metrics,
        granted=tables.PROTOCOLS[metrics.get("main", "")],
        rows=tables.rows(metrics),
        names=tables.NAMES,
        headline=tables.HEADLINE,
        compared="fixed" in metrics,
        systems=_systems(metrics),
        charts=_charts(metrics),
        pruned=_pruned(metrics),
        cut_words=CUT_WORDS,
        cut_classes=charts.CUT_CLASSES,
        cuts=CUTS,
        examples=[_example(record, other, pictures.get(record.id)) for record in drawn],
        steps=steps,
        where=where_lost,
    )
    write_text(path, page)


def calibration_plot(metrics: Mapping[str, Any]) -> str:
    """The page's plot of accuracy over confidence as an SVG file."""
    return charts.alone(_charts(metrics)["reliability"])


def sample(
    records: Sequence[Record], fixed: Mapping[str, Record], *, shown: int = SHOWN, seed: int = 0
) -> list[Record]:
    """Questions in equal parts from each group: gained, lost, both right, both wrong.

    What a small group leaves open is filled from the others in turn. Within a group the order is random by
    `seed`.
    """
    rng = np.random.default_rng(seed)
    groups: dict[str, list[Record]] = {name: [] for name in GROUPS.values()}
    for place in rng.permutation(len(records)).tolist():
        groups[_group(records[place], fixed.get(records[place].id))].append(records[place])
    drawn: dict[str, list[Record]] = {name: [] for name in groups}
    for turn in range(max((len(group) for group in groups.values()), default=0)):
        for name, group in groups.items():
            if turn < len(group) and sum(len(part) for part in drawn.values()) < shown:
                drawn[name].append(group[turn])
    return [record for part in drawn.values() for record in part]


def steps(walk: Walk) -> list[tuple[str, str, str]]:
    """The (from, relation, to) ids of a walk."""
    return list(zip(walk.entities[:-1], walk.relations, walk.entities[1:], strict=True))


def where_lost(place: str | None) -> str:
    """A place of `vispath_lit.evaluation.pruning` in words; empty for None."""
    cut, _, hop = (place or "").partition("@")
    words = {
        "start": "the start entity was not found",
        "edges": f"cut at hop {hop} by the edge score",
        "chains": f"cut at hop {hop} by the chain score",
        "beam": f"cut at hop {hop} by the beam",
        "stopped": f"still kept when the search stopped after hop {hop}",
        "kept": "kept to its end",
        "untraced": "the system tells nothing about its search",
    }
    return words.get(cut, "")


def _group(record: Record, fixed: Record | None) -> str:
    return GROUPS[bool(record.correct), None if fixed is None else bool(fixed.correct)]


def _example(record: Record, fixed: Mapping[str, Record], image: Path | None) -> Example:
    other = fixed.get(record.id)
    picture, trouble = "", "no picture"
    if image is not None:
        try:
            picture, trouble = _picture(image), ""
        except DataError:
            trouble = "the picture could not be read"
    systems = (("trained", record),) if other is None else (("trained", record), ("fixed", other))
    return Example(_group(record, other), systems, picture, trouble)


def _picture(file: Path) -> str:
    image = load_image(file)
    image.thumbnail((PICTURE, PICTURE))
    written = io.BytesIO()
    image.save(written, "JPEG", quality=82)
    return f"data:image/jpeg;base64,{base64.b64encode(written.getvalue()).decode()}"


def _systems(metrics: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """`fixed` first, as in every table, then the system itself."""
    return ({"fixed": metrics["fixed"]} if "fixed" in metrics else {}) | {"trained": metrics}


def _charts(metrics: Mapping[str, Any]) -> dict[str, Markup]:
    systems = _systems(metrics)
    return {
        "hits": charts.grouped_bars(_bars(systems, "hits@1"), "Hits@1 by hops, in percent"),
        "paths": charts.grouped_bars(_bars(systems, "path_hit@3"), "path-hit@3 by hops, in percent"),
        "reliability": charts.reliability(
            {name: found["calibration"]["bins"] for name, found in systems.items()},
            "accuracy over confidence",
        ),
    }


def _bars(systems: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, dict[str, charts.Bar]]:
    bars: dict[str, dict[str, charts.Bar]] = {}
    for system, found in systems.items():
        main = tables.PROTOCOLS[found.get("main", "")]
        for row in tables.rows(found, [name]):
            if row.protocol != main or not row.cells:
                continue
            cell = row.cells[0]
            words = (
                row.group if row.group in ("all", "unknown") else f"{row.group} hop{'s' * (row.group != '1')}"
            )
            bars.setdefault(words, {})[system] = charts.Bar(cell.value, cell.low, cell.high)
    return bars


def _pruned(metrics: Mapping[str, Any]) -> dict[str, tuple[Mapping[str, Any], Markup]]:
    """For each system its table of where gold was lost, and the same as a bar."""
    found = {}
    for system, part in _systems(metrics).items():
        table = part["pruned"]
        total = table["questions"] or 1
        shares = [("start", CUT_WORDS["start"], table["start"] / total)]
        for hop, cuts in table["hops"].items():
            shares += [(cut, f"hop {hop}: {CUT_WORDS[cut]}", cuts[cut] / total) for cut in CUTS]
        shares += [(name, CUT_WORDS[name], table[name] / total) for name in ("untraced", "kept")]
        segments = [(charts.CUT_CLASSES.get(cut, "c5"), words, share) for cut, words, share in shares]
        found[system] = table, charts.stacked_bar(segments, f"{system}: where the gold path was lost")
    return found
