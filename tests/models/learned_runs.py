"""Small runs of training on the ring world of `learned_worlds`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from learned_worlds import EvenAnalyzer, PlainTexts, WordEncoder, ring_questions

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.states import StateSettings
from vispath_lit.data.supervision import supervise
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.learned import LearnedDepthAnalyzer
from vispath_lit.models.chain_scorers.learned import LearnedChainScorer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.guided_walk import GuidedWalk, WalkSettings
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.judges.learned import LearnedJudge
from vispath_lit.models.model import LearnedParts
from vispath_lit.models.module import VisPathModule
from vispath_lit.types import Analysis, Query


def objective_texts(
    queries: Sequence[Query], analyses: Sequence[Analysis], intents: Sequence[str]
) -> list[str]:
    return [
        f"{query.text} {analysis.sketch}".strip() for query, analysis in zip(queries, analyses, strict=True)
    ]


def datamodule(
    graph: KnowledgeGraph, train: int = 120, batch_size: int = 32, seed: int = 0
) -> QuestionDataModule:
    return QuestionDataModule(
        graph,
        supervise(graph, ring_questions(train, seed=0)),
        supervise(graph, ring_questions(60, seed=1)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        batch_size=batch_size,
        seed=seed,
    )


def module(graph: KnowledgeGraph, seed: int = 0, **values: Any) -> VisPathModule:
    encoder = WordEncoder()
    pl.seed_everything(seed, verbose=False)
    intent = LearnedIntent(graph, encoder, width=32, word_dropout=0.05)
    parts = LearnedParts(
        {
            "intent": intent,
            "judge": LearnedJudge(graph, intent, width=32),
            "edge_scorer": LearnedEdgeScorer(graph, encoder, width=32),
            "chain_scorer": LearnedChainScorer(graph, encoder, width=16),
            "analyzer": LearnedDepthAnalyzer(EvenAnalyzer(), encoder, d_max=3, width=128),
        }
    )
    walk = GuidedWalk(
        parts, PlainTexts(graph, encoder), encoder, objective_texts, WalkSettings(chain_edges=4)
    )
    return VisPathModule(parts, walk, **values)


def trainer(folder: Path, **values: Any) -> pl.Trainer:
    given: dict[str, Any] = {
        "max_epochs": 1,
        "accelerator": "cpu",
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
        "gradient_clip_val": 1.0,
        "num_sanity_val_steps": 0,
        "use_distributed_sampler": False,
    }
    return pl.Trainer(default_root_dir=folder, **{**given, **values})
