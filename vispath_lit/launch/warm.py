"""Embeds what training will ask for in one go: long batches of equal length, under one progress bar."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.progress import track
from vispath_lit.protocols import QuestionAnalyzer, TextEncoder
from vispath_lit.search.pruning import objective_texts
from vispath_lit.types import Query, Question

CHUNK = 512


def warm(
    encoder: TextEncoder,
    analyzer: QuestionAnalyzer,
    questions: Sequence[Question],
    backbone: object = None,
    chunk: int = CHUNK,
) -> None:
    """Fills the caches with the tokens, sentences and objectives (Eq. 8) of the questions.

    Args:
        backbone: reads the tokens where it has frozen layers for that, `lower`; else the encoder does.
        chunk: questions that are embedded at a time.
    """
    reader: TextEncoder = getattr(backbone, "lower", encoder)
    texts = sorted({question.text for question in questions}, key=lambda text: (len(text), text))
    chunks = [texts[first : first + chunk] for first in range(0, len(texts), chunk)]
    for some in track(chunks, "Embedding questions"):
        reader.tokens(some)
        queries = [Query(text) for text in some]
        encoder.encode(objective_texts(queries, analyzer.analyze(queries), [""] * len(some)))
