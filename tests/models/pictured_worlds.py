"""A world where a picture's colour decides what the words leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytorch_lightning as pl
import torch
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, ring_questions
from PIL import Image

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.learned import LearnedDepthAnalyzer
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.guided_walk import GuidedWalk, WalkSettings
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.module import TrainingSettings, VisPathModule
from vispath_lit.types import Question

COLOURS = ("red", "green", "blue", "yellow")


class ColourCells:
    """An image encoder: the colours of four cells."""

    dim, side, fingerprint = 12, 2, "colours"

    @property
    def cells(self) -> ColourCells:
        return self

    def encode(self, images: Sequence[Image.Image]) -> torch.Tensor:
        small = [np.asarray(image.resize((2, 2)), dtype=np.float32).reshape(-1) - 120 for image in images]
        return torch.nn.functional.normalize(torch.from_numpy(np.stack(small)), dim=1)


def cued(folder: Path, count: int, seed: int) -> list[Question]:
    """Questions of one step that say "shown" in place of a relation where their picture's colour decides."""
    for colour in COLOURS:
        Image.new("RGB", (8, 8), colour).save(folder / f"{colour}.png")
    questions = []
    for number, question in enumerate(ring_questions(count, seed, relations=4, deepest=1)):
        relation = int(question.gold_paths[0][0][0][1:])
        image = folder / f"{COLOURS[relation]}.png"
        words = "shown" if number % 2 else question.text
        questions.append(replace(question, text=words, image=image))
    return questions


def learner(graph: KnowledgeGraph, image_tokens: int) -> VisPathModule:
    encoder = WordEncoder()
    pl.seed_everything(0)
    parts = LearnedParts(
        {
            "intent": LearnedIntent(graph, encoder, ColourCells(), width=32, image_tokens=image_tokens),
            "edge_scorer": LearnedEdgeScorer(graph, encoder, width=32),
            "chain_scorer": LearnedChainScorer(graph, encoder, width=16),
            "analyzer": LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3, width=32),
        }
    )
    walk = GuidedWalk(
        parts,
        PlainTexts(graph, encoder),
        encoder,
        lambda queries, analyses, intents: [query.text for query in queries],
        WalkSettings(chain_edges=4),
    )
    return VisPathModule(parts, walk, TrainingSettings(lr=4e-3))
