"""Embeds what a graph will be asked for, by whichever engine, into the caches that everything else reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vispath_lit.data.questions import read_questions
from vispath_lit.encoders.efficientnet import EfficientNetLite
from vispath_lit.encoders.minilm import MiniLM
from vispath_lit.engines.engine import Engine
from vispath_lit.kg.name_table import NameTexts, name_table
from vispath_lit.kg.name_vectors import NameVectors
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.warm import warm
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.grounders.references import ReferenceImages
from vispath_lit.progress import track

# An engine's workers wait where a chunk ends, so chunks take minutes; 100 MB of vectors, or of tokens.
NAMES, QUESTIONS = 1 << 16, 1 << 11


def embed(
    graph: KnowledgeGraph, cache: Path, questions: Sequence[Path], images: bool, engine: Engine
) -> dict[str, int]:
    """Embeds all names and relations of a graph, the words of questions, and the reference images.

    Returns:
        How many of each; what was in the cache is counted, too.
    """
    asked = [question for file in questions for question in read_questions(file)]
    encoder = MiniLM(cache, engine=engine)
    encoder.encode(graph.relation_labels())
    table, texts = name_table(graph, aliases=True), NameTexts(graph)
    for low in track(range(0, len(table), NAMES), "embedding names"):
        encoder.encode(texts.many(table.place[low : low + NAMES]))
    NameVectors(graph, encoder, cache, aliases=True)
    found = {"names": len(table), "relations": 2 * graph.num_relations}
    if asked:
        warm(encoder, PatternAnalyzer(), asked, QUESTIONS)
        found["questions"] = len(asked)
    encoder.flush()
    if images:
        pictures = EfficientNetLite(cache, engine=engine)
        for kind in (pictures.fine, pictures):  # The first fills both caches.
            found["images"] = len(ReferenceImages(graph, kind, cache).vectors)
        pictures.flush()
    return found
