from __future__ import annotations

import io
import json

from rich.console import Console

from vispath_lit.kg.stats import statistics, table
from vispath_lit.kg.store import KnowledgeGraph


def test_statistics_of_the_toy_graph(toy_graph: KnowledgeGraph) -> None:
    stats = json.loads(json.dumps(statistics(toy_graph)))
    counts = {key: value for key, value in stats.items() if isinstance(value, int)}
    assert counts == {
        "entities": 12,
        "triples": 30,
        "relations": 7,
        "types": 6,
        "images": 3,
        "entities_with_images": 2,
        "entities_with_description": 6,
        "isolated_entities": 2,
        "self_loops": 2,
        "parallel_edges": 4,
    }
    assert stats["image_kinds"] == {"flag": 2, "outline": 1}
    assert stats["degree"]["out"] == {"mean": 2.5, "median": 1.5, "max": 7}
    assert stats["degree"]["both"]["max"] == 13
    assert stats["top_relations"][0] == {"id": "borders", "label": "borders", "triples": 8}
    assert sum(relation["triples"] for relation in stats["top_relations"]) == 30
    assert stats["top_types"]["country"] == 4
    assert stats["hubs"][0] == {"id": "fr", "label": "France", "degree": 13}


def test_labels_of_the_table_act_on_no_terminal(toy_graph: KnowledgeGraph) -> None:
    stats = statistics(toy_graph)
    stats["top_relations"] = [{"id": "r", "label": "[red]\x1b[31m[/] \\", "triples": 1}]
    console = Console(file=io.StringIO(), width=200)
    console.print(table(stats))
    assert isinstance(console.file, io.StringIO)
    assert r"[red]\x1b[31m[/] \ 1" in console.file.getvalue()
    assert "\x1b" not in console.file.getvalue()


def test_the_table_shows_them(toy_graph: KnowledgeGraph) -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(table(statistics(toy_graph)))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    for text in ("parallel edges", "30", "flag 2", "borders 8", "France 13"):
        assert text in shown
