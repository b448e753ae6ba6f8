"""From records to the tables of `metrics.json` (DESIGN section 5).

Every average is over the questions that have gold for the metric: a number that the data fixes and no
prediction changes. Everything but `cost` and `memory` is the same for the same seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vispath_lit.evaluation import calibration
from vispath_lit.evaluation.bootstrap import intervals
from vispath_lit.evaluation.evaluator import Evaluation
from vispath_lit.evaluation.own import UNSEEN, harmonic_mean
from vispath_lit.evaluation.pruning import pruning_table
from vispath_lit.evaluation.records import Record
from vispath_lit.evaluation.scoring import ANSWER_METRICS, GROUNDING_METRICS, OWN_METRICS, PATH_METRICS

Table = dict[str, object]
COVERAGES = (0.25, 0.5, 0.75, 0.9, 1.0)
GROUPS = (ANSWER_METRICS, PATH_METRICS, OWN_METRICS)


def tables(evaluation: Evaluation, *, seed: int = 0) -> Table:
    """All tables of one system under one protocol."""
    records = evaluation.records
    return {
        "system": evaluation.system,
        "questions": len(records),
        "overall": averages(records) | {"sbert@0.3_chance": evaluation.chance},
        "by_hop": {hop: averages(part) for hop, part in by_hop(records).items()},
        "by_tag": {tag: averages(part) for tag, part in by_tag(records).items()},
        "intervals": {
            "overall": clustered(records, seed=seed),
            "by_hop": {hop: clustered(part, seed=seed) for hop, part in by_hop(records).items()},
        },
        "grounding": grounding(records),
        "calibration": calibrated(records),
        "abstention": abstention(records),
        "not_in_graph": averages([r for r in records if r.gold.in_graph is False]),
        "pruned": pruning_table(r.lost for r in records if r.lost is not None),
        "cost": cost(evaluation),
        "memory": {"peak_rss_mb": evaluation.peak_rss_mb, "peak_gpu_mb": evaluation.peak_gpu_mb},
        **_unseen(records),
        **_pairs(records),
    }


def _unseen(records: Sequence[Record]) -> Table:
    """The harmonic mean of the accuracies on unseen questions and unseen entities, where both are asked."""
    parts = by_tag(records)
    found = {tag: averages(parts.get(tag, []), OWN_METRICS).get(OWN_METRICS[0]) for tag in UNSEEN}
    first, second = (found[tag] for tag in UNSEEN)
    if first is None or second is None:
        return {}
    return {"unseen": {**found, "harmonic_mean": harmonic_mean(first, second)}}


def _pairs(records: Sequence[Record]) -> Table:
    """Of the questions that are to be right together, in how many pairs all are: what no guess achieves."""
    hits: dict[str, list[float]] = {}
    for record in records:
        if record.gold.pair is not None and "hits@1" in record.scores:
            hits.setdefault(record.gold.pair, []).append(record.scores["hits@1"])
    both = [min(values) for values in hits.values() if len(values) > 1]
    return {"pairs": {"pairs": len(both), "hits@1": sum(both) / len(both)}} if both else {}


def averages(
    records: Sequence[Record], names: Iterable[str] = ANSWER_METRICS + PATH_METRICS + OWN_METRICS
) -> dict[str, float]:
    """Micro-averages; a metric that no question has gold for is left out."""
    found: dict[str, float] = {"questions": len(records)}
    for name in names:
        values = [record.scores[name] for record in records if name in record.scores]
        if values:
            found[name] = sum(values) / len(values)
    return found


def by_hop(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by gold number of hops, in ascending order; `unknown` comes last."""
    parts: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda r: (r.gold.hops is None, r.gold.hops or 0)):
        parts.setdefault("unknown" if record.gold.hops is None else str(record.gold.hops), []).append(record)
    return parts


def by_kind(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of questions about a picture by its kind, in the order of the alphabet."""
    parts: dict[str, list[Record]] = {}
    for record in records:
        if record.gold.kind is not None:
            parts.setdefault(record.gold.kind, []).append(record)
    return dict(sorted(parts.items()))


def by_tag(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records by tag, in the order of the alphabet; a question counts under each of its tags."""
    parts: dict[str, list[Record]] = {}
    for record in records:
        for tag in dict.fromkeys(record.gold.tags):
            parts.setdefault(tag, []).append(record)
    return dict(sorted(parts.items()))


def scored(records: Sequence[Record], names: Sequence[str]) -> tuple[NDArray[np.float64], list[Record]]:
    """`[n, M]` values of a group of metrics, and the n records that have gold for them."""
    having = [record for record in records if names[0] in record.scores]
    rows = [[record.scores[name] for name in names] for record in having]
    return np.array(rows, dtype=np.float64).reshape(len(having), len(names)), having


def clustered(records: Sequence[Record], *, seed: int = 0) -> Table:
    """Metric to [low, high], the 95 % interval clustered by start entity; None where there is but one."""
    found: Table = {}
    for names in (*GROUPS, GROUNDING_METRICS):
        values, having = scored(records, names)
        if having:
            ends = intervals(values, [record.cluster for record in having], seed=seed)
            found |= {name: [end.low, end.high] for name, end in zip(names, ends, strict=True)}
    return found


def grounding(records: Sequence[Record]) -> Table:
    """Start entity, strict (same id), soft (label cosine >= 0.7), among the first five; by hop and kind of
    picture too.
    """
    having = [record for record in records if GROUNDING_METRICS[0] in record.scores]
    found: Table = dict(_short(averages(having, GROUNDING_METRICS)))
    hops = {hop: _short(averages(part, GROUNDING_METRICS)) for hop, part in by_hop(having).items()}
    kinds = {kind: _short(averages(part, GROUNDING_METRICS)) for kind, part in by_kind(having).items()}
    return found | {"by_hop": hops, "by_kind": kinds}


def calibrated(records: Sequence[Record]) -> Table:
    """Confidence against Hits@1 over the questions that have an answer; silence counts as a miss."""
    having = [record for record in records if "hits@1" in record.scores]
    confidence, correct = [r.confidence for r in having], [r.correct for r in having]
    fixed = calibration.fixed_bins(confidence, correct)
    adaptive = calibration.adaptive_bins(confidence, correct)
    return {
        "ece": calibration.calibration_error(fixed),
        "ece_adaptive": calibration.calibration_error(adaptive),
        "bins": [part._asdict() for part in fixed],
        "accuracy_at_coverage": {
            f"{coverage:g}": calibration.accuracy_at(confidence, correct, coverage) for coverage in COVERAGES
        },
    }


def abstention(records: Sequence[Record]) -> Table:
    """How often there was no answer, what stood behind the others, and how right those were."""
    spoken = [r for r in records if r.provenance not in ("abstained", "failed") and "hits@1" in r.scores]
    counts = Counter(record.provenance for record in records)
    return {
        "abstained": counts["abstained"] / len(records),
        "failed": counts["failed"] / len(records),
        "hits@1_when_answered": sum(r.correct for r in spoken) / len(spoken) if spoken else 0.0,
        "provenance": dict(counts),
    }


def cost(evaluation: Evaluation) -> Table:
    """Means a question, and the totals of requests and cache hits."""
    costs = [record.cost for record in evaluation.records]
    return {
        "llm_calls": sum(c.llm_calls for c in costs) / len(costs),
        "vlm_calls": sum(c.vlm_calls for c in costs) / len(costs),
        "vlm_forwards": sum(c.vlm_forwards for c in costs) / len(costs),
        "text_tokens": sum(c.text_tokens for c in costs) / len(costs),
        "seconds": sum(c.seconds for c in costs) / len(costs),
        "requests": evaluation.requests,
        "cache_hits": evaluation.cache_hits,
    }


def without_cost(table: object) -> object:
    """The same tables without `cost` and `memory` at any depth: what a seed fixes."""
    if isinstance(table, Mapping):
        return {key: without_cost(item) for key, item in table.items() if key not in ("cost", "memory")}
    return table


def _short(table: Mapping[str, float]) -> dict[str, float]:
    return {name.removeprefix("grounding_"): value for name, value in table.items()}
