"""Speed of the encoders and of composed texts, and what composed and two-stage texts keep of the exact ones.

python benchmarks/embed.py STORE QUESTIONS [--cache DIR] [--limit N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from vispath_lit.data.questions import read_questions
from vispath_lit.encoders.efficientnet import EfficientNetLite
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import verbalize
from vispath_lit.models.similarity import grouped_dot
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.exact import Exact
from vispath_lit.models.texts.retention import chain_retention, edge_retention
from vispath_lit.models.texts.samples import WalkSampler, random_starts
from vispath_lit.types import Frontier, Paths

M1, M3 = 30, 3
MAX_EDGES = 1500  # of a state: exact texts of the largest hubs would take minutes


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    graph: KnowledgeGraph
    encoder: MiniLM
    composed: Composed
    exact: Exact


def rate(name: str, items: int, work: Callable[[], object]) -> None:
    """Prints items a second of wall and of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{name:36s} {items / wall:12,.0f} a second   {items / cpu:12,.0f} a CPU-second")


def encoders(graph: KnowledgeGraph) -> None:
    """Sentences and pictures that no cache holds."""
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as empty:
        text, image = MiniLM(empty), EfficientNetLite(empty)
        labels = graph.labels(rng.permutation(graph.num_entities)[:2000])
        rate("labels embedded", len(labels), lambda: text.encode(labels))
        rate("the same from the cache", len(labels), lambda: text.encode(labels))
        walks = WalkSampler(graph, 0).walks(random_starts(graph, 500, rng), 3)
        chains = verbalize(graph, walks)
        rate("3-hop chain texts embedded", len(chains), lambda: text.encode(chains))
        noise = [Image.fromarray(rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)) for _ in range(48)]
        rate("pictures embedded", len(noise), lambda: image.encode(noise))
        rate("the same from the cache", len(noise), lambda: image.encode(noise))


def composed_speed(setting: Setting) -> None:
    graph, composed = setting.graph, setting.composed
    starts = random_starts(graph, 600, np.random.default_rng(1))
    frontier = expand(graph, WalkSampler(graph, 1).walks(starts, 1))
    rate("edges composed", len(frontier), lambda: composed.edge_vectors(frontier.relation, frontier.tail))
    walks = WalkSampler(graph, 2).walks(starts, 2)
    parents = walks.select(torch.arange(len(walks)).repeat_interleave(M1))
    relation, tail = (torch.from_numpy(part) for part in WalkSampler(graph, 3).step(parents.ends.numpy()))
    chains = parents.extend(torch.arange(len(parents)), relation, tail)
    rate("3-hop chains composed, new tails", len(chains), lambda: composed.chain_vectors(chains))
    rate("3-hop chains composed, known tails", len(chains), lambda: composed.chain_vectors(chains))


def best_edges(setting: Setting, paths: Paths, intents: Tensor) -> Paths:
    """Each path by its `M1` best edges of Eq. 5, composed texts."""
    frontier = expand(setting.graph, paths)
    texts = setting.composed.edge_vectors(frontier.relation, frontier.tail)
    scores = grouped_dot(texts, frontier.edge_path, intents[paths.state])
    rows = []
    for i in range(len(paths)):
        mine = torch.nonzero(frontier.edge_path == i)[:, 0]
        rows.append(mine[scores[mine].argsort(descending=True, stable=True)[:M1]])
    kept = frontier.select(torch.cat(rows))
    return paths.extend(kept.edge_path, kept.relation, kept.tail)


def best_chains(setting: Setting, chains: Paths, objective: Tensor) -> Paths:
    """The `M3` best chains of each question of Eq. 8, composed texts."""
    scores = grouped_dot(setting.composed.chain_vectors(chains), chains.state, objective)
    rows = []
    for i in range(len(objective)):
        mine = torch.nonzero(chains.state == i)[:, 0]
        rows.append(mine[scores[mine].argsort(descending=True, stable=True)[:M3]])
    return chains.select(torch.cat(rows))


def kept_of_exact(setting: Setting, file: Path, limit: int) -> None:
    """Cosines and retention at the states that a fixed search of real questions meets."""
    graph = setting.graph
    questions = [q for q in read_questions(file) if q.topic_entity is not None][:limit]
    topics = [graph.entity_index(str(q.topic_entity)) for q in questions]
    objective = setting.encoder.encode([q.text for q in questions])
    paths = Paths.starts(torch.tensor(topics), torch.arange(len(topics)))
    degrees = torch.from_numpy(graph.degrees())
    for hop in (1, 2, 3):
        small = paths.select(torch.nonzero(degrees[paths.ends] <= MAX_EDGES)[:, 0])
        frontier = expand(graph, small)
        report_edges(setting, frontier, objective[small.state], hop)
        chains = best_edges(setting, paths, objective)
        report_chains(setting, chains, objective, hop)
        paths = best_chains(setting, chains, objective)


def report_edges(setting: Setting, frontier: Frontier, intents: Tensor, hop: int) -> None:
    pair = (frontier.relation, frontier.tail)
    ours, exact = setting.composed.edge_vectors(*pair), setting.exact.edge_vectors(*pair)
    cosine = float((ours.dense() * exact.dense()).sum(1).mean())
    parts = [
        f"{keep}x {edge_retention(setting.composed, setting.exact, frontier, intents, M1, keep).mean():.4f}"
        for keep in (1, 2, 4)
    ]
    print(f"hop {hop} edges   {len(frontier):6d}  cosine {cosine:.4f}  kept of the exact top {M1}:", *parts)


def report_chains(setting: Setting, chains: Paths, objective: Tensor, hop: int) -> None:
    ours, exact = setting.composed.chain_vectors(chains), setting.exact.chain_vectors(chains)
    cosine = float((ours.dense() * exact.dense()).sum(1).mean())
    parts = [
        f"{keep}x {chain_retention(setting.composed, setting.exact, chains, objective, M3, keep).mean():.4f}"
        for keep in (1, 2, 3, 4)
    ]
    print(f"hop {hop} chains  {len(chains):6d}  cosine {cosine:.4f}  kept of the exact top {M3}:", *parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=40, help="questions whose exact texts are embedded")
    arguments = parser.parse_args()
    graph = KnowledgeGraph.open(arguments.store)
    encoder = MiniLM(arguments.cache)
    encoders(graph)
    composed = Composed(graph, encoder, arguments.cache)
    print("composers on entities they never saw:", composed.report["edges"], composed.report["chains"])
    setting = Setting(graph, encoder, composed, Exact(graph, encoder))
    composed_speed(setting)
    kept_of_exact(setting, arguments.questions, arguments.limit)


if __name__ == "__main__":
    main()
