"""Questions a second on an atlas folder: the fixed search by text provider, the learned one by backbone.

    python benchmarks/search.py ATLAS --texts composed two_stage exact --vlm none minilm_vision

Start and depth are given, no question was searched before, edges are walked both ways and no hub is cut.
What a graph needs once is prepared first and kept in --cache: the vectors of its labels, and whatever a
provider makes of them. Each system then searches with an encoder whose cache holds those labels only,
so that questions, and the edges and chains of exact texts, are embedded within the measured time. One
question from outside the sample makes lazy parts load.

The learned system is `parts=learned` as an evaluation runs it, with untrained weights: they cost what trained
ones do. Its pictures' features are cached, what a backbone makes of them and of the words is not. `--set`
takes overrides of its parts.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from omegaconf import OmegaConf

from vispath_lit.data.queries import to_query
from vispath_lit.data.questions import read_questions
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import load_config
from vispath_lit.launch.parts import World, make, make_parts, make_system, section
from vispath_lit.launch.system import learned_of
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.protocols import System, TextProvider
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Prediction, Query, Question

CONFIGS = Path(__file__).parent.parent / "conf" / "parts" / "texts"


@dataclass(frozen=True)
class Speed:
    """One line of the table; `per_cpu_second` tells what a busy machine hides."""

    system: str
    questions: int
    per_second: float
    per_cpu_second: float
    setup_seconds: float
    edges: float
    hits_at_1: float
    peak_mb: float


def label_cache(graph: KnowledgeGraph, folder: Path) -> Path:
    """A folder that holds the vectors of the graph's labels, made where it is missing."""
    encoder = MiniLM(folder)
    encoder.encode(graph.relation_labels())
    encoder.encode(graph.labels(range(graph.num_entities)))
    encoder.flush()
    return folder


def make_texts(name: str, graph: KnowledgeGraph, encoder: MiniLM, cache: Path) -> TextProvider:
    """The provider of `conf/parts/texts/NAME.yaml`."""
    config = OmegaConf.to_container(OmegaConf.load(CONFIGS / f"{name}.yaml"), resolve=True)
    assert isinstance(config, dict)
    resources = {"graph": graph, "text_encoder": encoder, "cache_dir": cache}
    provider: TextProvider = make({str(key): value for key, value in config.items()}, resources)
    return provider


def fixed(graph: KnowledgeGraph, encoder: MiniLM, provider: TextProvider, batch: int) -> VisPath:
    """The fixed system with the start given."""
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
        search=SearchSettings(backtrack=False, trace="kept"),
        batch_size=batch,
    )


def answered(graph: KnowledgeGraph, question: Question, prediction: Prediction) -> bool:
    """Hits@1 by id."""
    return prediction.answer_entity in {graph.entity_index(entity) for entity in question.answer_ids}


def learned(
    graph: KnowledgeGraph,
    encoder: MiniLM,
    vlm: str,
    queries: Sequence[Query],
    options: argparse.Namespace,
) -> System:
    """The learned system of `conf/eval.yaml` with a backbone; the start is given, no grounder is asked."""
    given = ["parts=learned", f"parts/vlm={vlm}", "parts/grounder=name", f"system.batch_size={options.batch}"]
    config = load_config("eval", [*given, *options.set])
    pictures = make(section(config.image_encoder), {"cache_dir": options.cache})
    pictures.encode([query.image for query in queries if query.image is not None])
    world = World(None, graph, encoder, pictures, options.cache)
    parts = make_parts(config.parts, world)
    learned_of(parts).eval()
    return make_system(config.system, world, parts)


def measure(
    graph: KnowledgeGraph,
    name: str,
    maker: Callable[[MiniLM], System],
    queries: Sequence[Query],
    questions: Sequence[Question],
    options: argparse.Namespace,
) -> Speed:
    """Answers batch after batch until the questions or the seconds are used up."""
    begin = time.perf_counter()
    maker(MiniLM(options.cache / "prepared"))
    setup = time.perf_counter() - begin
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(label_cache(graph, options.cache / "labels"), folder, dirs_exist_ok=True)
        return timed(graph, name, maker(MiniLM(folder)), setup, queries, questions, options)


def timed(
    graph: KnowledgeGraph,
    name: str,
    system: System,
    setup: float,
    queries: Sequence[Query],
    questions: Sequence[Question],
    options: argparse.Namespace,
) -> Speed:
    system.answer(queries[-1:])
    found: list[Prediction] = []
    begin, busy = time.perf_counter(), time.process_time()
    while len(found) < len(queries) - 1 and time.perf_counter() - begin < options.seconds:
        found += system.answer(queries[len(found) : min(len(found) + 2 * options.batch, len(queries) - 1)])
    seconds = time.perf_counter() - begin
    hits = [answered(graph, question, one) for question, one in zip(questions, found, strict=False)]
    edges = [sum(hop.edges for hop in one.trace) for one in found]
    return Speed(
        system=name,
        questions=len(found),
        per_second=len(found) / seconds,
        per_cpu_second=len(found) / (time.process_time() - busy),
        setup_seconds=setup,
        edges=sum(edges) / len(edges),
        hits_at_1=sum(hits) / len(hits),
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def makers(
    graph: KnowledgeGraph, queries: Sequence[Query], options: argparse.Namespace
) -> Iterator[tuple[str, Callable[[MiniLM], System]]]:
    """Each system's name, and how to build it upon a text encoder."""

    def with_texts(name: str, encoder: MiniLM) -> System:
        return fixed(graph, encoder, make_texts(name, graph, encoder, options.cache), options.batch)

    def with_backbone(name: str, encoder: MiniLM) -> System:
        return learned(graph, encoder, name, queries, options)

    for name in options.texts:
        yield f"fixed, texts {name}", partial(with_texts, name)
    for name in options.vlm:
        yield f"learned, vlm {name}", partial(with_backbone, name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("atlas", type=Path, help="folder with store/ and questions/")
    parser.add_argument(
        "--texts", nargs="*", default=["composed", "two_stage", "exact"], help="providers of the fixed system"
    )
    parser.add_argument(
        "--vlm", nargs="*", default=["none", "minilm_vision"], help="backbones of the learned system"
    )
    parser.add_argument("--set", nargs="*", default=[], help="overrides of the learned system, as of eval.py")
    parser.add_argument("--split", default="val", help="question file")
    parser.add_argument("--hops", type=int, default=3, help="hops of the questions; the depth is granted")
    parser.add_argument("--questions", type=int, default=512, help="questions at most")
    parser.add_argument(
        "--seconds", type=float, default=30.0, help="seconds a provider at most (whole calls of two batches)"
    )
    parser.add_argument("--batch", type=int, default=256, help="questions searched together")
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
    with tempfile.TemporaryDirectory() as temporary:
        options.cache = options.cache or Path(temporary)
        machine = platform.processor() or platform.machine()
        print(f"{machine}, {options.threads} threads, batches of {options.batch}")
        queries = [to_query(question, graph, grant_start=True, grant_depth=True) for question in questions]
        for name, maker in makers(graph, queries, options):
            found = measure(graph, name, maker, queries, questions, options)
            print(json.dumps(found.__dict__), flush=True)


if __name__ == "__main__":
    main()
