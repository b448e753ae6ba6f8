"""Questions a second of the fixed search on an atlas folder, for each text provider.

    python benchmarks/search.py ATLAS --texts composed two_stage exact

The start is given, the questions are new to the process, edges are walked both ways and no hub is cut. Every
provider starts with an encoder whose cache is empty, so that the question texts are embedded within the time.
What a provider prepares once a graph (its networks, its table of edges) is timed apart, as is one question
from outside the sample that makes lazy parts load.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from omegaconf import OmegaConf

from vispath_lit.data.questions import read_questions
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.parts import make
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Prediction, Query, Question

CONFIGS = Path(__file__).parent.parent / "conf" / "parts" / "texts"


@dataclass(frozen=True)
class Speed:
    """One line of the table."""

    texts: str
    questions: int
    per_second: float
    setup_seconds: float
    edges: float
    path_hit: float
    peak_mb: float


def build(graph: KnowledgeGraph, texts: str, cache: Path, settings: SearchSettings, batch: int) -> VisPath:
    """The fixed system with the provider of `conf/parts/texts/TEXTS.yaml` and an encoder without cache."""
    encoder = MiniLM(cache_dir=None)
    config = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{texts}.yaml"), resolve=True)
    assert isinstance(config, dict)
    provider = make(
        {str(key): value for key, value in config.items()},
        {"graph": graph, "text_encoder": encoder, "cache_dir": cache},
    )
    return VisPath(
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
        search=settings,
        batch_size=batch,
    )


def found_gold(graph: KnowledgeGraph, question: Question, prediction: Prediction) -> bool:
    """Whether a gold path is among the kept ones."""
    start = prediction.candidates[0].entity
    kept = {(path.relations, path.entities) for path in prediction.paths}
    return any(
        (
            tuple(graph.relation_index(relation) for relation, _ in gold),
            (start, *(graph.entity_index(entity) for _, entity in gold)),
        )
        in kept
        for gold in question.gold_paths
    )


def measure(
    graph: KnowledgeGraph, texts: str, questions: Sequence[Question], options: argparse.Namespace
) -> Speed:
    """Answers batch after batch until the questions or the seconds are used up."""
    settings = SearchSettings(backtrack=False, trace="kept")
    begin = time.perf_counter()
    system = build(graph, texts, options.cache, settings, options.batch)
    queries = [
        Query(question.text, topic=graph.entity_index(question.topic_entity or ""), depth=options.hops)
        for question in questions
    ]
    system.answer(queries[-1:])
    setup = time.perf_counter() - begin
    found: list[Prediction] = []
    begin = time.perf_counter()
    while len(found) < len(queries) - 1 and time.perf_counter() - begin < options.seconds:
        found += system.answer(queries[len(found) : min(len(found) + options.batch, len(queries) - 1)])
    seconds = time.perf_counter() - begin
    hits = [found_gold(graph, question, one) for question, one in zip(questions, found, strict=False)]
    edges = [sum(hop.edges for hop in one.trace) for one in found]
    return Speed(
        texts=texts,
        questions=len(found),
        per_second=len(found) / seconds,
        setup_seconds=setup,
        edges=sum(edges) / len(edges),
        path_hit=sum(hits) / len(hits),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("atlas", type=Path, help="folder with store/ and questions/")
    parser.add_argument(
        "--texts", nargs="+", default=["composed", "two_stage", "exact"], help="text providers"
    )
    parser.add_argument("--split", default="val", help="question file")
    parser.add_argument("--hops", type=int, default=3, help="hops of the questions; the depth is granted")
    parser.add_argument("--questions", type=int, default=512, help="questions at most")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="seconds a provider at most (whole batches)"
    )
    parser.add_argument("--batch", type=int, default=64, help="questions searched together")
    parser.add_argument("--threads", type=int, default=2, help="threads of torch")
    parser.add_argument(
        "--cache", type=Path, help="where providers keep what they prepare; a new folder by default"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    graph = KnowledgeGraph.open(options.atlas / "store")
    questions = [
        question
        for question in read_questions(options.atlas / "questions" / f"{options.split}.jsonl")
        if question.hops == options.hops and question.topic_entity
    ][: options.questions + 1]
    if len(questions) < 2:
        parser.error(f"{options.split} holds {len(questions)} {options.hops}-hop questions; 2 are needed")
    with tempfile.TemporaryDirectory() as folder:
        options.cache = options.cache or Path(folder)
        machine = platform.processor() or platform.machine()
        print(f"{machine}, {options.threads} threads, batches of {options.batch}")
        for texts in options.texts:
            print(json.dumps(measure(graph, texts, questions, options).__dict__), flush=True)


if __name__ == "__main__":
    main()
