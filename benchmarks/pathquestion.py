"""PathQuestion, topic entity given: mean and deviation of Hits@1 over seeds, each split and number of hops.

python benchmarks/pathquestion.py FOLDER [--out outputs/pathquestion] [--seeds 5] [KEY=VALUE ...]

Each seed splits and trains anew. A run whose `metrics.json` is there is not run again.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

from rich.table import Table

from vispath_lit.launch.config import load_config
from vispath_lit.launch.record import read_metrics
from vispath_lit.launch.train import train
from vispath_lit.progress import console

RUNS = [(hops, protocol) for protocol in ("random", "start_disjoint") for hops in (2, 3)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", help="holds the published files")
    parser.add_argument("--out", type=Path, default=Path("outputs/pathquestion"), help="where the runs go")
    parser.add_argument("--seeds", type=int, default=5, help="0, 1, ... up to this many")
    parser.add_argument("overrides", nargs="*", help="of train.py, for every run")
    chosen = parser.parse_intermixed_args()
    table = Table(title="PathQuestion, start given: Hits@1, mean and deviation over seeds")
    for name in ("hops", "split", "seeds", "fixed", "learned", "least"):
        table.add_column(name, justify="right")
    for hops, protocol in RUNS:
        found = [one(chosen, hops, protocol, seed) for seed in range(chosen.seeds)]
        fixed, learned = ([pair[i] for pair in found] for i in (0, 1))
        shown = (str(hops), protocol, str(len(found)), spread(fixed), spread(learned), f"{min(learned):.4f}")
        table.add_row(*shown)
    console.print(table)


def one(chosen: argparse.Namespace, hops: int, protocol: str, seed: int) -> tuple[float, float]:
    """Hits@1 of the fixed and the trained system on the test questions of one split."""
    run = chosen.out.absolute() / f"{hops}-{protocol}-{seed}"
    if not (run / "metrics.json").is_file():
        keys = [
            f"data.folder={chosen.folder}",
            f"data.hops={hops}",
            f"data.protocol={protocol}",
            f"seed={seed}",
        ]
        config = load_config("train", ["experiment=pathquestion", "logger=none", *keys, *chosen.overrides])
        config.run_dir = str(run)
        train(config)
    metrics = read_metrics(run)
    fixed, learned = metrics["fixed"]["given_start"], metrics["given_start"]
    return float(fixed["overall"]["hits@1"]), float(learned["overall"]["hits@1"])


def spread(values: list[float]) -> str:
    """Mean and sample deviation."""
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.4f} ± {deviation:.4f}"


if __name__ == "__main__":
    main()
