"""Whether several processes train to what one does, within the spread of seeds.

python benchmarks/ddp.py [--out outputs/ddp] [--seeds 3] [--processes 2] [KEY=VALUE ...]

Each seed is trained by one process, and by several with the same number of questions a step, on processors.
A run whose `metrics.json` is there is not run again.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from rich.table import Table

from vispath_lit.launch.config import load_config
from vispath_lit.launch.record import read_metrics
from vispath_lit.progress import console

ROOT = Path(__file__).resolve().parents[1]
METRICS = ("hits@1", "path_hit@3", "f1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("outputs/ddp"), help="where the runs go")
    parser.add_argument("--seeds", type=int, default=3, help="0, 1, ... up to this many")
    parser.add_argument("--processes", type=int, default=2, help="compared with one")
    parser.add_argument("overrides", nargs="*", help="of train.py, for every run")
    chosen = parser.parse_intermixed_args()
    asked = load_config("train", chosen.overrides).training.batch_size
    if asked % chosen.processes:
        parser.error(f"training.batch_size is {asked}; it must be a multiple of {chosen.processes} processes")
    found = {
        processes: [one(chosen, processes, seed, asked // processes) for seed in range(chosen.seeds)]
        for processes in (1, chosen.processes)
    }
    table = Table(title=f"start given, {chosen.seeds} seeds: mean, least and largest")
    table.add_column("processes")
    for name in METRICS:
        table.add_column(name, justify="right")
    for processes, runs in found.items():
        table.add_row(str(processes), *(spread([run[name] for run in runs]) for name in METRICS))
    console.print(table)


def one(chosen: argparse.Namespace, processes: int, seed: int, size: int) -> dict[str, float]:
    """What the system of one run reaches on its test questions."""
    run = chosen.out.absolute() / f"{processes}-{seed}"
    if not (run / "metrics.json").is_file():
        words = [*chosen.overrides, f"seed={seed}", f"training.batch_size={size}", f"run_dir={run}"]
        words += ["compare_fixed=false", "logger=none", "trainer=ddp", "trainer.accelerator=cpu"]
        words += [f"trainer.devices={processes}"]
        subprocess.run([sys.executable, str(ROOT / "train.py"), *words], check=True)
    metrics = read_metrics(run)
    overall = metrics.get("given_start", metrics)["overall"]
    return {name: float(overall[name]) for name in METRICS}


def spread(values: list[float]) -> str:
    """Mean, smallest and largest."""
    return f"{statistics.mean(values):.3f} [{min(values):.3f}, {max(values):.3f}]"


if __name__ == "__main__":
    main()
