"""Imports a graph like Wikidata5M and measures what a user waits for, beside pykeen and networkx.

    python benchmarks/import.py                     21 M triples, then 5 M with the peers
    python benchmarks/import.py --peer-python PATH  where pykeen lives in an environment of its own

The graph is generated from a seed in the published form: 4.6 M entities with five names each on average, 822
relations, ends and relations drawn from power laws. Every measurement runs in a process of its own. Peak
memory is what the system counts as resident, mapped files included; CPU-seconds tell what a busy machine
hides.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

WORDS = 40_000  # Of the vocabulary that names are made of.
FULL, PEERS = 21_000_000, 5_000_000
ENTITIES_A_TRIPLE = 4_600_000 / 21_000_000
RELATIONS = 822
CHUNK = 1_000_000
PLAIN: dict[str, Any] = {"separator": "\t", "include_header": False, "quote_style": "never"}
EXPANSIONS = 10_000
BATCH = 1_000


def generate(folder: Path, triples: int, seed: int = 0) -> None:
    """Writes the three files of names and triples, once."""
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    entities = round(triples * ENTITIES_A_TRIPLE)
    ids = rng.permutation(np.arange(1, 13 * entities, 13) + rng.integers(0, 13, entities))[:entities]
    words = pl.Series([_word(rng) for _ in range(WORDS)])
    with (folder / "wikidata5m_entity.txt").open("wb") as file:
        for start in range(0, entities, CHUNK):
            _names(rng, ids[start : start + CHUNK], words).write_csv(file, **PLAIN)
    labels = (words[:RELATIONS] + " " + words[1 : RELATIONS + 1]).to_list()
    (folder / "wikidata5m_relation.txt").write_text(
        "".join(f"P{relation}\t{label}\n" for relation, label in enumerate(labels))
    )
    with (folder / "wikidata5m_transductive_train.txt").open("wb") as file:
        for start in range(0, triples, CHUNK):  # Every entity once as subject, then by the power laws.
            n = min(CHUNK, triples - start)
            known = np.arange(min(start, entities), min(start + n, entities))
            head = np.concatenate([known, _power(rng, n - len(known), entities, 1.3)])
            tail = _power(rng, n, entities, 3.0)
            columns = {"h": ids[head], "r": _power(rng, n, RELATIONS, 2.5), "t": ids[tail]}
            frame = pl.DataFrame(columns).select(
                pl.concat_str(pl.lit(letter), pl.col(name)).alias(name) for name, letter in LETTERS.items()
            )
            frame.write_csv(file, **PLAIN)
    (folder / "done").touch()


LETTERS = {"h": "Q", "r": "P", "t": "Q"}


def _word(rng: np.random.Generator) -> str:
    """One in twenty has an accent."""
    letters = "aeiourstnlcdmpghbkv"
    word = "".join(letters[i] for i in rng.integers(0, len(letters), rng.integers(3, 10)))
    return word + "é" if rng.random() < 0.05 else word


def _names(rng: np.random.Generator, ids: NDArray[np.int64], words: pl.Series) -> pl.DataFrame:
    """A line an entity: five names of two words on average, as the published file has."""
    counts = 1 + rng.geometric(0.25, len(ids)).clip(1, 40)
    owners = np.repeat(np.arange(len(ids)), counts)
    first, second = (words.gather(_power(rng, len(owners), WORDS, 1.5)) for _ in range(2))
    names = pl.DataFrame({"owner": owners, "name": first.str.to_titlecase() + " " + second})
    joined = names.group_by("owner", maintain_order=True).agg(pl.col("name").str.join("\t"))
    return pl.DataFrame({"id": "Q" + pl.Series(ids).cast(pl.String), "names": joined["name"]})


def _power(rng: np.random.Generator, count: int, size: int, skew: float) -> NDArray[np.int64]:
    """Indices below `size` whose frequencies fall with a power of their rank."""
    return np.minimum((rng.random(count) ** skew * size).astype(np.int64), size - 1)


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def report(**figures: object) -> None:
    print(json.dumps({**figures, "peak_gb": round(memory_mb("VmHWM") / 1e3, 3)}))


def timed(job: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), cpu_seconds()
    job()
    return {"seconds": round(time.perf_counter() - wall, 2), "cpu_seconds": round(cpu_seconds() - cpu, 2)}


def ours(folder: Path, store: Path) -> None:
    """Names, both directions and look-up tables, from the files to a store."""
    from vispath_lit.kg.importers.wikidata5m import Format
    from vispath_lit.kg.staging.run import import_graph

    report(**timed(lambda: import_graph(Format((folder,)), store)))


def opened(store: Path) -> None:
    """Opening, expanding, and the private memory that 10,000 random expansions leave behind."""
    import torch

    from vispath_lit.kg.frontier import expand
    from vispath_lit.kg.manifest import Manifest
    from vispath_lit.kg.store import KnowledgeGraph
    from vispath_lit.types import Paths

    torch.set_num_threads(1)
    wall, cpu = time.perf_counter(), cpu_seconds()
    graph = KnowledgeGraph.open(store)
    seconds, cpu = time.perf_counter() - wall, cpu_seconds() - cpu

    def expansion(entities: NDArray[np.int64]) -> int:
        starts = torch.from_numpy(entities)
        return len(expand(graph, Paths.starts(starts, torch.zeros_like(starts))).tail)

    rng = np.random.default_rng(1)
    before = memory_mb("RssAnon")
    for _ in range(EXPANSIONS // BATCH):
        expansion(rng.integers(0, graph.num_entities, BATCH))
    grown = memory_mb("RssAnon") - before
    batches = [rng.integers(0, graph.num_entities, BATCH) for _ in range(300)]
    edges = 0
    wall, used = time.perf_counter(), cpu_seconds()
    for batch in batches:
        edges += expansion(batch)
    wall, used = time.perf_counter() - wall, cpu_seconds() - used
    sizes = Manifest.read(store).files
    arrays = sum(size for name, size in sizes.items() if name.startswith(("out_", "in_")))
    report(
        triples=graph.num_triples,
        open_seconds=round(seconds, 3),
        open_cpu_seconds=round(cpu, 3),
        bytes_a_triple=round(arrays / graph.num_triples, 2),
        store_gb=round(sum(sizes.values()) / 1e9, 2),
        expansions_a_second=round(len(batches) * BATCH / wall),
        expansions_a_cpu_second=round(len(batches) * BATCH / used),
        edges_a_second=round(edges / wall),
        private_mb_grown=round(grown, 1),
    )


def memory_mb(kind: str) -> float:
    """RssAnon is memory that is no mapped file; VmHWM the most that this program, not its parent, had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(kind):
            return int(line.split()[1]) / 1e3
    raise RuntimeError(f"/proc/self/status has no {kind}; this benchmark needs Linux")


def pykeen(folder: Path) -> None:
    """Triples alone, as its users load them."""
    from pykeen.triples import TriplesFactory  # type: ignore[import-not-found]

    path = folder / "wikidata5m_transductive_train.txt"
    report(**timed(lambda: TriplesFactory.from_path(path, create_inverse_triples=False)))


def networkx(folder: Path) -> None:
    """Triples alone, both directions, an edge object each."""
    import networkx as nx  # type: ignore[import-untyped]

    def job() -> None:
        graph = nx.MultiDiGraph()
        with (folder / "wikidata5m_transductive_train.txt").open() as file:
            for line in file:
                head, relation, tail = line.rstrip("\n").split("\t")
                graph.add_edge(head, tail, key=relation)

    report(**timed(job))


JOBS = {"ours": ours, "opened": opened, "pykeen": pykeen, "networkx": networkx}


def run(python: str, job: str, *paths: Path) -> dict[str, float]:
    command = [python, str(Path(__file__).resolve()), "--job", job, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr[-2000:]}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{job:9}", json.dumps(found), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--triples", type=int, default=FULL, help="of the large graph; 0: none")
    parser.add_argument("--peer-triples", type=int, default=PEERS, help="of the compared one; 0: none")
    parser.add_argument("--work", type=Path, help="where files go and stay; default: a temporary folder")
    parser.add_argument("--peer-python", default=sys.executable, help="a python that has both peers")
    parser.add_argument("--job", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        JOBS[options.job[0]](*map(Path, options.job[1:]))  # type: ignore[operator]
        return
    with tempfile.TemporaryDirectory() as temporary:
        work = options.work or Path(temporary)
        for triples, peers in ((options.triples, False), (options.peer_triples, True)):
            if not triples:
                continue
            files, store = work / f"files-{triples}", work / f"store-{triples}"
            generate(files, triples)
            print(f"{triples:,} triples")
            mine = run(sys.executable, "ours", files, store)
            run(sys.executable, "opened", store)
            for name in ("pykeen", "networkx") if peers else ():
                other = run(options.peer_python, name, files)
                print(
                    f"{'':9} {other['seconds'] / mine['seconds']:.1f} times the time, "
                    f"{other['cpu_seconds'] / mine['cpu_seconds']:.1f} times the CPU-seconds, "
                    f"{other['peak_gb'] / mine['peak_gb']:.1f} times the memory of ours"
                )


if __name__ == "__main__":
    main()
