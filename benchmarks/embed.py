"""Speed of the encoders and of composed texts, and what composed and two-stage texts keep of the exact ones.

python benchmarks/embed.py STORE QUESTIONS [--cache DIR] [--limit N]
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
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
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.models.similarity import grouped_dot
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.exact import Exact
from vispath_lit.models.texts.retention import chain_retention, edge_retention
from vispath_lit.models.texts.samples import WalkSampler, random_starts
from vispath_lit.models.texts.two_stage import TwoStage
from vispath_lit.search.loop import Searcher
from vispath_lit.search.ranking import top_per_group
from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Frontier, Intents, Paths, Query, Question, Rows

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


def kept_of_exact(setting: Setting, questions: Sequence[Question]) -> None:
    """Cosines and retention at the states that a fixed search of real questions meets."""
    graph = setting.graph
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


class Counting:
    """An encoder that notes which distinct texts it is asked for: those that a cold cache would embed."""

    def __init__(self, real: MiniLM) -> None:
        self.real, self.dim, self.fingerprint = real, real.dim, real.fingerprint
        self.asked: set[str] = set()

    def encode(self, texts: Sequence[str]) -> Tensor:
        self.asked.update(texts)
        return self.real.encode(texts)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        self.asked.update(texts)
        return self.real.tokens(texts)


class Watching(FixedEdgeScorer):
    """Sees a whole frontier with composed texts, then its shortlist with exact ones, and compares.

    Attributes:
        shares: by hop, what share of each path's exact top `M1` is on its shortlist; of paths with more edges
            than that and at most `MAX_EDGES`.
    """

    def __init__(self, exact: Exact) -> None:
        self.exact = exact
        self.shares: dict[int, list[Tensor]] = defaultdict(list)
        self._whole: Frontier | None = None

    def __call__(self, frontier: Frontier, texts: Rows, intents: Intents) -> Tensor:
        if self._whole is None:
            self._whole = frontier
        else:
            self._compare(self._whole, frontier, intents)
            self._whole = None
        return super().__call__(frontier, texts, intents)

    def _compare(self, whole: Frontier, shortlist: Frontier, intents: Intents) -> None:
        counts = torch.bincount(whole.edge_path, minlength=len(whole.paths))
        measured = (counts > M1) & (counts <= MAX_EDGES)
        edges = whole.select(torch.nonzero(measured[whole.edge_path])[:, 0])
        if not len(edges):
            return
        scores = super().__call__(edges, self.exact.edge_vectors(edges.relation, edges.tail), intents)
        best = edges.select(top_per_group(scores, edges.edge_path, M1))
        listed = {*zip(*(part.tolist() for part in triple(shortlist)), strict=True)}
        kept = [float(one in listed) for one in zip(*(part.tolist() for part in triple(best)), strict=True)]
        self.shares[whole.paths.length + 1].append(torch.tensor(kept).reshape(-1, M1).mean(1))


def triple(edges: Frontier) -> tuple[Tensor, Tensor, Tensor]:
    return edges.edge_path, edges.relation, edges.tail


def two_stage(setting: Setting, cache: Path, questions: Sequence[Question], texts: int | None) -> None:
    """The fixed search to its full depth over all edges both ways, with no label left to embed."""
    graph, counting, watching = setting.graph, Counting(setting.encoder), Watching(setting.exact)
    provider = TwoStage(graph, setting.encoder, cache, texts=texts)
    provider.exact = Exact(graph, counting)
    search = SearchSettings(trace="none")
    searcher = Searcher(
        graph=graph,
        text_encoder=counting,
        texts=provider,
        analyzer=PatternAnalyzer(),
        grounder=TopicGrounder(),
        intent=QuestionIntent(counting),
        edge_scorer=watching,
        chain_scorer=FixedChainScorer(),
        examiner=NoExaminer(),
        judge=DepthJudge(graph),
        selector=BestPathSelector(graph),
        search=search,
    )
    counts = []
    for question in questions:
        counting.asked.clear()
        topic = graph.entity_index(str(question.topic_entity))
        searcher.search([Query(question.text, topic=topic, depth=search.d_max)])
        counts.append(len(counting.asked))
    hops = {hop: torch.cat(shares) for hop, shares in sorted(watching.shares.items())}
    parts = [f"hop {hop} {shares.mean():.4f} of {len(shares)}" for hop, shares in hops.items()]
    print(f"two-stage, texts={texts}: kept of the exact top {M1}, paths:", ", ".join(parts))
    print(
        f"    texts a question, {search.d_max} hops: {sum(counts) / len(counts):.0f}, at most {max(counts)}"
    )


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
    asked = [q for q in read_questions(arguments.questions) if q.topic_entity is not None][: arguments.limit]
    kept_of_exact(setting, asked)
    for texts in (900, None):  # the default, and the price without it
        two_stage(setting, arguments.cache, asked, texts)


if __name__ == "__main__":
    main()
