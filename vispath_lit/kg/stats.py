"""What a graph holds, in numbers: for people as a table, for programs as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from vispath_lit.kg.csr import heads
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import printable

TOP = 20


def statistics(graph: KnowledgeGraph) -> dict[str, Any]:
    """Counts, degrees and shares as plain JSON values.

    `parallel_edges` counts triples beyond the first between the same (subject, object) in that direction;
    `top_*` list the most frequent, ties by index (relations) or first appearance (types, kinds).
    """
    out, into = graph.out_degrees(), graph.in_degrees()
    head = heads(graph.out_indptr)
    types = _type_counts(graph)
    kinds = _counts(graph.image_kinds)
    return {
        "path": str(graph.path),
        "fingerprint": graph.fingerprint,
        "entities": graph.num_entities,
        "triples": graph.num_triples,
        "relations": graph.num_relations,
        "types": len(types),
        "images": len(graph.image_entity),
        "entities_with_images": len(np.unique(graph.image_entity)),
        "image_kinds": kinds,
        "entities_with_description": _described(graph),
        "isolated_entities": int(np.sum(out + into == 0)),
        "self_loops": int(np.sum(head == graph.out_tail)),
        "parallel_edges": graph.num_triples - _distinct_pairs(head, graph),
        "degree": {"out": _spread(out), "in": _spread(into), "both": _spread(out + into)},
        "top_relations": _top_relations(graph),
        "top_types": dict(list(types.items())[:TOP]),
        "hubs": _hubs(graph, out + into),
    }


def table(stats: dict[str, Any]) -> Table:
    """The statistics as a rich table."""
    result = Table("", "", title=f"Graph {stats['fingerprint'][:12]}", show_header=False)
    for key in (
        "entities",
        "triples",
        "relations",
        "types",
        "images",
        "entities_with_images",
        "entities_with_description",
        "isolated_entities",
        "self_loops",
        "parallel_edges",
    ):
        result.add_row(key.replace("_", " "), f"{stats[key]:,}")
    for side, degree in stats["degree"].items():
        numbers = f"mean {degree['mean']:.2f}, median {degree['median']:g}, max {degree['max']:,}"
        result.add_row(f"degree, {side}", numbers)
    for key in ("image_kinds", "top_types"):
        result.add_row(key.replace("_", " "), _listing(stats[key].items()))
    result.add_row("top relations", _listing((r["label"], r["triples"]) for r in stats["top_relations"]))
    result.add_row("hubs", _listing((h["label"], h["degree"]) for h in stats["hubs"]))
    return result


def _listing(items: Any) -> str:
    # Labels are the user's text: brackets in them must not be read as markup, nor escapes by a terminal.
    return escape(printable(", ".join(f"{name or '(none)'} {count:,}" for name, count in items)))


def _spread(degrees: NDArray[np.int64]) -> dict[str, float]:
    return {
        "mean": round(float(degrees.mean()), 4),
        "median": float(np.median(degrees)),
        "max": int(degrees.max()),
    }


def _counts(values: list[str]) -> dict[str, int]:
    """Most frequent first; the sort is stable, so ties keep the order of first appearance."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _type_counts(graph: KnowledgeGraph) -> dict[str, int]:
    column = graph.column("type")
    codes = np.asarray(column.indices.to_numpy(zero_copy_only=False))
    counts = np.bincount(codes, minlength=len(column.dictionary))
    names: list[str] = column.dictionary.to_pylist()
    order = np.argsort(-counts, kind="stable")
    return {names[i]: int(counts[i]) for i in order if names[i]}


def _described(graph: KnowledgeGraph) -> int:
    lengths = graph.column("description")
    return int(np.sum(np.diff(_offsets(lengths)) > 0))


def _offsets(column: Any) -> NDArray[np.int64]:
    buffer = column.buffers()[1]
    return np.frombuffer(buffer, dtype=np.int64)[column.offset : column.offset + len(column) + 1]


def _distinct_pairs(head: NDArray[np.int32], graph: KnowledgeGraph) -> int:
    key = head.astype(np.int64) * graph.num_entities + graph.out_tail
    key.sort()
    return 1 + int(np.count_nonzero(key[1:] != key[:-1]))


def _top_relations(graph: KnowledgeGraph) -> list[dict[str, Any]]:
    counts = np.bincount(graph.out_relation, minlength=graph.num_relations)
    order = np.argsort(-counts, kind="stable")[:TOP].tolist()
    return [
        {"id": graph.relation_id(r), "label": graph.relation_label(r), "triples": int(counts[r])}
        for r in order
    ]


def _hubs(graph: KnowledgeGraph, degrees: NDArray[np.int64]) -> list[dict[str, Any]]:
    order = np.argsort(-degrees, kind="stable")[:5].tolist()
    return [{"id": graph.entity_id(e), "label": graph.label(e), "degree": int(degrees[e])} for e in order]
