"""Fixed parts with exact, two-stage and composed texts on the same questions: the price of cheaper texts.

python benchmarks/providers.py [--root data/atlas] [--split val] [--limit 1000]
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.table import Table

from vispath_lit.evaluation.comparison import compare
from vispath_lit.evaluation.evaluator import Evaluation, evaluate
from vispath_lit.evaluation.summary import averages
from vispath_lit.launch.config import load_config
from vispath_lit.launch.parts import make_world
from vispath_lit.launch.questions import split_questions
from vispath_lit.launch.system import build_system
from vispath_lit.progress import console

PROVIDERS = ("exact", "two_stage", "composed")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data/atlas", help="where Atlas is, or is built")
    parser.add_argument("--split", default="val", help="of the questions")
    parser.add_argument("--limit", type=int, default=1000, help="first N questions")
    chosen = parser.parse_args()
    done: dict[str, Evaluation] = {}
    for provider in PROVIDERS:
        overrides = ["parts=fixed", f"parts/texts={provider}", f"data.source.root={chosen.root}"]
        config = load_config("eval", [*overrides, "parts.search.trace=none"])
        world = make_world(config)
        system = build_system(config, world, None)
        questions = split_questions(world, chosen.split, chosen.limit)
        done[provider] = evaluate(system, questions, world.graph, world.text_encoder, grant_start=True)
    table = Table(title=f"fixed parts on {chosen.split}, start given, {chosen.limit} questions")
    for name in ("texts", "Hits@1", "less exact", "95 % interval", "questions/s"):
        table.add_column(name, justify="left" if name == "texts" else "right")
    for provider, evaluation in done.items():
        compared: dict[str, Any] = compare(evaluation.records, done["exact"].records)
        loss = compared["overall"]["hits@1"]
        seconds = sum(record.cost.seconds for record in evaluation.records)
        table.add_row(
            provider,
            f"{averages(evaluation.records)['hits@1']:.3f}",
            f"{loss['difference']:+.3f}",
            f"[{loss['low']:+.3f}, {loss['high']:+.3f}]",
            f"{len(evaluation.records) / seconds:.1f}",
        )
    console.print(table)


if __name__ == "__main__":
    main()
