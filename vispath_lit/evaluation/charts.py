"""Small inline SVG charts: numbers and short labels in, escaped markup in the page's colours out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

CUT_CLASSES = {"start": "c0", "edges": "c1", "chains": "c2", "beam": "c3", "stopped": "c4", "kept": "ok"}
# The page's own rules for a chart in a file of its own, on white.
STYLE = """
svg { background: #fff; } text { font: 11px system-ui, sans-serif; fill: #667079; }
.grid { stroke: #e2e5e8; } .ideal { stroke: #667079; stroke-dasharray: 4 4; }
.line { fill: none; stroke-width: 1.5; } .line.trained { stroke: #2f6fde; } .line.fixed { stroke: #a4adb6; }
circle { fill-opacity: .6; } .trained { fill: #2f6fde; } .fixed { fill: #a4adb6; } .line { fill: none; }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A share with its interval, both in [0, 1]."""

    value: float
    low: float | None = None
    high: float | None = None


def grouped_bars(groups: Mapping[str, Mapping[str, Bar]], title: str) -> Markup:
    """Bars in groups (number of hops), one for each system, with whiskers; `fixed` comes in grey."""
    width, height, left, bottom = 460, 220, 34, 26
    room = (width - left) / max(1, len(groups))
    inner = height - bottom - 12
    parts = [_grid(left, width, height - bottom, inner)]
    for place, (group, bars) in enumerate(groups.items()):
        each = min(34.0, room / (len(bars) + 1))
        middle = left + room * (place + 0.5)
        parts.append(_text(middle, height - 8, group, "middle"))
        for i, (system, bar) in enumerate(bars.items()):
            x = middle + (i - len(bars) / 2) * each
            parts.append(_bar(x + 2, each - 4, height - bottom, inner, system, bar))
    return _svg(width, height, title, parts)


def reliability(curves: Mapping[str, Sequence[Mapping[str, float]]], title: str) -> Markup:
    """Accuracy over confidence; a dot for each bin, its area by the number of questions."""
    size, left, bottom = 240, 34, 30
    width, inner = left + size + 10, size
    parts = [_grid(left, left + size, size + 10, inner)]
    parts.append(
        Markup('<line class="ideal" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(
            left, size + 10, left + size, 10
        )
    )
    for system, bins in curves.items():
        total = sum(part["size"] for part in bins) or 1
        points = [
            (left + size * part["confidence"], 10 + size * (1 - part["accuracy"]), part["size"] / total)
            for part in bins
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
        parts.append(Markup('<polyline class="line {}" points="{}"/>').format(_class(system), line))
        parts += [
            Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:.1f}"/>').format(
                _class(system), x, y, 2.5 + 9 * share**0.5
            )
            for x, y, share in points
        ]
    parts.append(_text(left + size / 2, size + 10 + bottom - 4, "confidence", "middle"))
    for share in (0.0, 0.5, 1.0):
        parts.append(_text(left + size * share, size + 24, f"{share:g}", "middle"))
    return _svg(width, size + 10 + bottom, title, parts)


def alone(chart: Markup) -> str:
    """A chart as an SVG file."""
    head, rest = chart.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg"><style>{STYLE}</style>{rest}\n'


def stacked_bar(shares: Sequence[tuple[str, str, float]], title: str) -> Markup:
    """One bar of (class, label, share) segments, shares summing to 1; each tells its label on hover."""
    width, height, x = 1040.0, 26, 0.0
    parts = []
    for name, label, share in shares:
        if share <= 0:
            continue
        parts.append(
            Markup(
                '<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="{}">'
                "<title>{}: {:.1f} %</title></rect>"
            ).format(name, x, max(0.5, width * share - 1), height, label, 100 * share)
        )
        if share > 0.12:
            parts.append(_text(x + 6, 17, f"{label} {100 * share:.0f} %", "start", "inside"))
        x += width * share
    return _svg(width, height, title, parts)


def _bar(x: float, width: float, base: float, inner: float, system: str, bar: Bar) -> Markup:
    tall = inner * bar.value
    drawn = Markup(
        '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" rx="2">'
        "<title>{}: {:.1f} %</title></rect>"
    ).format(_class(system), x, base - tall, width, tall, system, 100 * bar.value)
    if bar.low is not None and bar.high is not None:
        drawn += Markup('<line class="whisker" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>').format(
            x + width / 2, base - inner * bar.low, base - inner * bar.high
        )
    return drawn + _text(
        x + width / 2,
        base - inner * max(bar.value, bar.high or 0) - 4,
        f"{100 * bar.value:.0f}",
        "middle",
        "value",
    )


def _grid(left: float, right: float, base: float, inner: float) -> Markup:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = base - inner * share
        lines.append(
            Markup('<line class="grid" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>').format(
                left, right, y, y
            )
        )
        lines.append(_text(left - 6, y + 4, f"{100 * share:.0f}", "end"))
    return Markup("").join(lines)


def _text(x: float, y: float, text: str, anchor: str, name: str = "axis") -> Markup:
    return Markup('<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(
        name, x, y, anchor, text
    )


def _svg(width: float, height: float, title: str, parts: Sequence[Markup]) -> Markup:
    head = Markup('<svg viewBox="0 0 {:g} {:g}" role="img" aria-label="{}" style="max-width:{:g}px">').format(
        width, height, title, width
    )
    return head + Markup("").join(parts) + Markup("</svg>")


def _class(system: str) -> str:
    return "fixed" if system == "fixed" else "trained"
