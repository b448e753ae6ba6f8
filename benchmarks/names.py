"""Recall, speed and size of the name index at a million names, made of a graph's real ones.

    python benchmarks/names.py STORE --names 1000000

Names are two labels of STORE joined by " / ", as no public list of a million names is at hand. The vector of
a joined name is the mean of the two labels' real vectors, at unit length: to embed a million texts would
take half an hour (--encode does). Queries are really embedded: joined names misspelt (a letter in twelve
lost, added, changed or swapped), and paraphrased (an alias in place of a label, the halves swapped).

A result counts if its exact cosine is at least that of the exact tenth. Milliseconds are of a search in
batches without embedding, of wall time and of processor time, which tells what a busy machine hides, each of
the fastest of five searches.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import faiss
import numpy as np
import torch
from numpy.typing import NDArray
from rich.table import Table
from torch import Tensor

from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.kg.build import build
from vispath_lit.kg.name_codes import CodedNames, shortlist
from vispath_lit.kg.name_vectors import NameVectors
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import cache_dir
from vispath_lit.progress import console, track

JOIN = " / "
BATCH = 50_000
RUNS = 5
LETTERS = "abcdefghijklmnopqrstuvwxyz"
Floats = NDArray[np.float32]


class Joined:
    """Joined names by the mean of their halves' vectors; any other text by the encoder itself."""

    def __init__(self, encoder: MiniLM, labels: Sequence[str]) -> None:
        self.encoder, self.dim = encoder, encoder.dim
        self.fingerprint = f"joined-{encoder.fingerprint}"
        self.place = {label: i for i, label in enumerate(labels)}
        self.vectors = encoder.encode(labels)

    def encode(self, texts: Sequence[str]) -> Tensor:
        halves = [[self.place[half] for half in text.split(JOIN)] for text in texts]
        rows = torch.tensor(halves)
        return torch.nn.functional.normalize(self.vectors[rows[:, 0]] + self.vectors[rows[:, 1]], dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        return self.encoder.tokens(texts)


def joined_graph(labels: Sequence[str], names: int, folder: Path) -> KnowledgeGraph:
    """A graph of entities with joined labels, no two alike."""
    rng = np.random.default_rng(0)
    codes = np.unique(rng.integers(0, len(labels) ** 2, size=names + names // 10))
    codes = rng.permutation(codes)[:names].tolist()
    lines = (
        f"e{i}\t{labels[c // len(labels)]}{JOIN}{labels[c % len(labels)]}\t\t\t\n"
        for i, c in enumerate(codes)
    )
    with (folder / "entities.tsv").open("w", encoding="utf8") as file:
        file.write("id\tlabel\taliases\ttype\tdescription\n")
        file.writelines(lines)
    (folder / "relations.tsv").write_text("id\tlabel\nr\tr\n")
    (folder / "triples.tsv").write_text("subject\trelation\tobject\ne0\tr\te1\n")
    build(folder, folder / "store")
    return KnowledgeGraph.open(folder / "store")


def misspelt(text: str, rng: random.Random) -> str:
    letters = list(text.replace(JOIN, " "))
    for _ in range(1 + len(letters) // 12):
        at, kind = rng.randrange(len(letters)), rng.randrange(4)
        if kind == 0 and len(letters) > 1:
            del letters[at]
        elif kind == 1:
            letters.insert(at, rng.choice(LETTERS))
        elif kind == 2:
            letters[at] = rng.choice(LETTERS)
        else:
            letters[at - 1], letters[at] = letters[at], letters[at - 1]
    return "".join(letters)


def paraphrased(text: str, aliases: dict[str, tuple[str, ...]], rng: random.Random) -> str:
    halves = text.split(JOIN)
    swapped = [rng.choice(aliases.get(half, (half,))) for half in reversed(halves)]
    return " ".join(swapped)


def exact_tenth(
    vectors: NameVectors, encoder: Joined | MiniLM, graph: KnowledgeGraph, queries: Floats
) -> Floats:
    """`[q]`: the tenth best cosine of all names, by float32 vectors."""
    best = np.full((len(queries), 10), -2.0, dtype=np.float32)
    for start in track(range(0, graph.num_entities, BATCH), "exact search"):
        rows = np.arange(start, min(start + BATCH, graph.num_entities))
        scores = queries @ encoder.encode(graph.labels(rows)).numpy().T
        best = np.concatenate([best, -np.partition(-scores, 9, axis=1)[:, :10]], axis=1)
        best = -np.partition(-best, 9, axis=1)[:, :10]
    tenth: Floats = best.min(axis=1)
    return tenth


def recall(
    numbers: NDArray[np.int64],
    tenth: Floats,
    queries: Floats,
    encoder: Joined | MiniLM,
    graph: KnowledgeGraph,
) -> float:
    """Share of the ten results that score at least the exact tenth; names are numbered like entities here."""
    found = encoder.encode(graph.labels(np.maximum(numbers, 0).ravel())).numpy()
    scores = np.einsum("qd,qkd->qk", queries, found.reshape(*numbers.shape, -1))
    return float(((scores >= tenth[:, None] - 1e-6) & (numbers >= 0)).mean())


def fastest(vectors: NameVectors, queries: Floats) -> tuple[NDArray[np.int64], float, float]:
    """The ten nearest names `[q, 10]`; milliseconds a query, wall and processor, the least of some runs."""
    wall, cpu = [], []
    for _ in range(RUNS):
        begun = time.perf_counter(), time.process_time()
        _, numbers = vectors.nearest(queries, 10)
        wall.append(time.perf_counter() - begun[0])
        cpu.append(time.process_time() - begun[1])
    return numbers, 1e3 * min(wall) / len(queries), 1e3 * min(cpu) / len(queries)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("store", type=Path, help="a built store whose labels and aliases are used")
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1000, help="half misspelt, half paraphrased")
    parser.add_argument("--seed", type=int, default=0, help="of the queries; settings are chosen on another")
    parser.add_argument(
        "--shortlists",
        type=int,
        nargs="*",
        default=[],
        help="names that the bytes decide on; default: the index's own",
    )
    parser.add_argument("--encode", action="store_true", help="embed the joined names themselves")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="one row for each")
    parser.add_argument("--cache", type=Path, default=None, help="of text vectors; default: the user's")
    chosen = parser.parse_args()
    source = KnowledgeGraph.open(chosen.store)
    labels = [
        label for label in dict.fromkeys(source.labels(range(source.num_entities))) if JOIN not in label
    ]
    minilm = MiniLM(chosen.cache or cache_dir())
    encoder = minilm if chosen.encode else Joined(minilm, labels)
    aliases = {source.label(e): source.aliases(e) for e in range(source.num_entities) if source.aliases(e)}
    with tempfile.TemporaryDirectory() as folder:
        graph = joined_graph(labels, chosen.names, Path(folder))
        begun = time.process_time()
        vectors = NameVectors(graph, encoder, Path(folder), aliases=False)
        built = time.process_time() - begun
        begun = time.perf_counter()
        vectors = NameVectors(graph, encoder, Path(folder), aliases=False)
        opened = time.perf_counter() - begun
        rng = random.Random(chosen.seed)
        asked = graph.labels([rng.randrange(graph.num_entities) for _ in range(chosen.queries)])
        half = len(asked) // 2
        kinds = {
            "misspelt": minilm.encode([misspelt(text, rng) for text in asked[:half]]).numpy(),
            "paraphrased": minilm.encode([paraphrased(text, aliases, rng) for text in asked[half:]]).numpy(),
        }
        index = vectors._index
        own = shortlist(len(vectors.table), 10)
        report: dict[str, object] = {
            "names": len(vectors.table),
            "bytes_a_name": round(vectors.nbytes / len(vectors.table), 1),
            "build_cpu_seconds": round(built, 1),
            "open_seconds": round(opened, 3),
            "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }
        table = Table(title=json.dumps(report))
        for column in ("queries", "shortlist", "recall@10", "threads", "ms a query", "CPU ms a query"):
            table.add_column(column, justify="right")
        for kind, queries in kinds.items():
            tenth = exact_tenth(vectors, encoder, graph, queries)
            for wide in chosen.shortlists or [own]:
                if isinstance(index, CodedNames):
                    index.shortlist = wide
                for threads in chosen.threads:
                    faiss.omp_set_num_threads(threads)
                    numbers, wall, cpu = fastest(vectors, queries)
                    share = recall(numbers, tenth, queries, encoder, graph)
                    table.add_row(kind, str(wide), f"{share:.4f}", str(threads), f"{wall:.2f}", f"{cpu:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()
