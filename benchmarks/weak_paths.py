"""Questions a second of the search for weak paths on an atlas folder, gold paths removed.

    python benchmarks/weak_paths.py ATLAS [--hops 3] [--questions 4096] [--workers 2] [--json]

Only questions of that many gold hops are asked, each from its topic to its answers, over edges in both
directions and over stored ones alone. The graph's look-up tables are warm; processes are started, and start,
within the measured time. How often the gold path is among the found ones is shown too: shortest paths are
not always the meant ones.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from vispath_lit.data.questions import read_questions
from vispath_lit.data.weak_cache import Asked, weak_paths
from vispath_lit.data.weak_paths import Found, WeakPathFinder
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question


@dataclass(frozen=True)
class Speed:
    """One line; `per_cpu_second` is of this process alone and tells what a busy machine hides."""

    inverse: bool
    workers: int
    questions: int
    per_second: float
    per_cpu_second: float
    without_path: int
    paths: float
    gold_found: float
    peak_mb: float


def measure(
    graph: KnowledgeGraph, asked: Sequence[Question], inverse: bool, options: argparse.Namespace
) -> Speed:
    finder = WeakPathFinder(graph, options.hops, 64, 5_000_000, inverse)
    pairs: list[Asked] = [
        (graph.entity_index(one.topic_entity or ""), graph.entity_indices(one.answer_ids)) for one in asked
    ]
    weak_paths(finder, pairs[:2])
    begin, busy = time.perf_counter(), time.process_time()
    found = weak_paths(finder, pairs, workers=options.workers)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - busy
    having = [one for one in found if not isinstance(one, str)]
    gold = [holds_gold(graph, one, ways) for one, ways in zip(asked, found, strict=True)]
    return Speed(
        inverse=inverse,
        workers=options.workers,
        questions=len(pairs),
        per_second=len(pairs) / seconds,
        per_cpu_second=len(pairs) / cpu if options.workers == 1 else float("nan"),
        without_path=len(found) - len(having),
        paths=sum(map(len, having)) / max(1, len(having)),
        gold_found=sum(gold) / len(gold),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def holds_gold(graph: KnowledgeGraph, question: Question, found: Found | str) -> bool:
    gold = {
        tuple((graph.relation_index(relation), graph.entity_index(entity)) for relation, entity in path)
        for path in question.gold_paths
    }
    return not isinstance(found, str) and any(tuple(walk) in gold for walk, _ in found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("atlas", type=Path, help="holds store/ and questions/")
    parser.add_argument(
        "--hops", type=int, default=3, help="gold hops of the questions, and the longest path"
    )
    parser.add_argument("--questions", type=int, default=4096, help="of the training split, the first ones")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    graph = KnowledgeGraph.open(options.atlas / "store")
    questions = read_questions(options.atlas / "questions" / "train.jsonl")
    asked = [one for one in questions if one.hops == options.hops][: options.questions]
    for inverse in (True, False):
        line = asdict(measure(graph, asked, inverse, options))
        if options.json:
            print(json.dumps(line))
        else:
            print("  ".join(f"{key} {value:.6g}" for key, value in line.items()))


if __name__ == "__main__":
    main()
