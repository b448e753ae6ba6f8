"""Three hops on a graph like Wikidata5M beside three on Atlas: how much a search feels the graph's size.

    python benchmarks/import.py --peer-triples 0 --work FOLDER       makes FOLDER/store-21000000
    python benchmarks/large_search.py ATLAS FOLDER/store-21000000

The fixed parts (M1 = 30, M3 = 3, both directions, composed texts) search from random starts of each graph,
with the words of the same questions of Atlas, which nobody embedded before. For speed alone it does not
matter what vectors say: those of entities are random bytes in the file that a search with `kept: int8` maps,
and the composers are untrained. A graph whose composed edges fit into `--table-mb` keeps them in a file that
is made beforehand; others are composed while the search runs. Atlas is therefore measured both ways.

`embedding` is the time spent on the words of the questions. Hubs are cut at `--hub-cap` edges a direction.
"""

from __future__ import annotations

import argparse
import json
import logging
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vispath_lit.data.questions import read_questions
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.kg import frontier
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.models.texts.composed import Composed
from vispath_lit.models.texts.composer_files import save_composers
from vispath_lit.models.texts.composers import ChainComposer, EdgeComposer
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Query

ROWS = 1 << 16  # Random vectors written at once.


@dataclass(frozen=True)
class Speed:
    """One line; the seconds are those of the processor, which a busy machine does not lengthen much.

    Attributes:
        cpu_ms, embedding_ms: a question; the second is part of the first.
        edges: looked at, a question.
        hubs: endpoints whose edges were cut, a question and direction; edges_left_out: theirs, a question.
        private_mb: memory that the searches left behind, mapped files not counted.
    """

    graph: str
    entities: int
    triples: int
    edge_table: bool
    questions: int
    per_second: float
    per_cpu_second: float
    cpu_ms: float
    embedding_ms: float
    edges: float
    hubs: float
    edges_left_out: float
    walked: int
    private_mb: float
    peak_mb: float


class Timed(MiniLM):
    """The encoder of an empty cache, which counts the time it takes."""

    seconds = 0.0

    def encode(self, texts: Sequence[str]) -> Tensor:
        begin = time.process_time()
        vectors = super().encode(texts)
        self.seconds += time.process_time() - begin
        return vectors


class Hubs(logging.Handler):
    """Sums what `kg.frontier` says of the hubs that it cuts."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.cut = self.hubs = 0
        frontier.log.addHandler(self)
        frontier.log.setLevel(logging.DEBUG)
        frontier.log.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        _, cut, _, hubs = (int(str(value)) for value in record.args)
        self.cut += cut
        self.hubs += hubs


def random_labels(graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> None:
    """Writes random vectors where `Composed` keeps those of all labels."""
    file = cache / "labels" / f"{graph.fingerprint}-{encoder.fingerprint}-int8.npy"
    if file.exists():
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    rng, partial = np.random.default_rng(0), file.with_suffix(".partial")
    shape = (graph.num_entities, encoder.dim)
    table = np.lib.format.open_memmap(partial, mode="w+", dtype=np.int8, shape=shape)
    for low in range(0, len(table), ROWS):
        table[low : low + ROWS] = rng.integers(-127, 128, table[low : low + ROWS].shape, dtype=np.int8)
    table.flush()
    partial.replace(file)


def composers(encoder: MiniLM, cache: Path) -> Path:
    """Untrained ones, as wide as distilled ones."""
    file = cache / "untrained.safetensors"
    torch.manual_seed(0)
    save_composers(file, EdgeComposer(encoder.dim), ChainComposer(encoder.dim), encoder.fingerprint, {})
    return file


def measure(
    name: str, graph: KnowledgeGraph, texts: Sequence[str], table_mb: int, options: argparse.Namespace
) -> Speed:
    """Searches with an encoder and a provider that have met no question yet."""
    encoder = Timed(None)
    random_labels(graph, encoder, options.cache)
    provider = Composed(
        graph,
        encoder,
        options.cache,
        str(composers(encoder, options.cache)),
        table_mb=table_mb,
        whole_labels=True,
        kept="int8",
    )
    system = VisPath(
        graph=graph,
        text_encoder=encoder,
        texts=provider,
        analyzer=PatternAnalyzer(),
        grounder=TopicGrounder(),
        intent=QuestionIntent(encoder),
        edge_scorer=FixedEdgeScorer(),
        chain_scorer=FixedChainScorer(),
        examiner=NoExaminer(),
        judge=DepthJudge(graph),
        selector=BestPathSelector(graph),
        search=SearchSettings(backtrack=False, trace="kept", hub_cap=options.hub_cap),
        batch_size=options.batch,
        threads=1,
    )
    rng = np.random.default_rng(1)
    starts = np.flatnonzero(graph.degrees() > 0)
    topics = starts[rng.integers(len(starts), size=len(texts))].tolist()
    queries = [Query(text, topic=topic, depth=3) for text, topic in zip(texts, topics, strict=True)]
    system.answer([Query("What is it?", topic=topics[0], depth=3)])  # Lazy parts load.
    hubs, encoder.seconds = Hubs(), 0.0
    before, begin, busy = private_mb(), time.perf_counter(), time.process_time()
    found = system.answer(queries)
    seconds, busy = time.perf_counter() - begin, time.process_time() - busy
    frontier.log.removeHandler(hubs)
    count = len(queries)
    return Speed(
        graph=name,
        entities=graph.num_entities,
        triples=graph.num_triples,
        edge_table=provider.whole_edges,
        questions=count,
        per_second=round(count / seconds, 1),
        per_cpu_second=round(count / busy, 1),
        cpu_ms=round(1000 * busy / count, 2),
        embedding_ms=round(1000 * encoder.seconds / count, 2),
        edges=round(sum(hop.edges for one in found for hop in one.trace) / count, 1),
        hubs=round(hubs.hubs / count, 2),
        edges_left_out=round(hubs.cut / count, 1),
        walked=sum(len(one.trace) == 3 for one in found),
        private_mb=round(private_mb() - before),
        peak_mb=round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    )


def private_mb() -> float:
    """RssAnon: memory that is no mapped file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("/proc/self/status has no RssAnon; this benchmark needs Linux")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("atlas", type=Path, help="folder with store/ and questions/")
    parser.add_argument("large", type=Path, help="the large graph's store")
    parser.add_argument("--questions", type=int, default=256)
    parser.add_argument("--batch", type=int, default=256, help="questions searched together")
    parser.add_argument("--hub-cap", type=int, help="edges of an endpoint and direction; default: all")
    parser.add_argument("--table-mb", type=int, default=2048, help="of composed edges; beyond, on the fly")
    parser.add_argument("--cache", type=Path, help="where vectors are kept; a new folder by default")
    options = parser.parse_args()
    torch.set_num_threads(1)
    asked = read_questions(options.atlas / "questions" / "val.jsonl")
    texts = list(dict.fromkeys(one.text for one in asked if one.hops == 3))[: options.questions]
    with tempfile.TemporaryDirectory() as temporary:
        options.cache = options.cache or Path(temporary)
        atlas, large = (KnowledgeGraph.open(store) for store in (options.atlas / "store", options.large))
        made = measure("Atlas", atlas, texts, options.table_mb, options)
        print(json.dumps(asdict(made)), flush=True)
        cold = measure("Atlas", atlas, texts, 0, options)
        print(json.dumps(asdict(cold)), flush=True)
        there = measure("large", large, texts, options.table_mb, options)
        print(json.dumps(asdict(there)))
    print(
        f"a question on the large graph takes {there.cpu_ms / made.cpu_ms:.2f} times the CPU of one on Atlas "
        f"with composed edges in a file, {there.cpu_ms / cold.cpu_ms:.2f} times that of one without"
    )


if __name__ == "__main__":
    main()
