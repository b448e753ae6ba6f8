"""Composed text vectors: small distilled networks join label vectors, thousands of times as fast as SBERT."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import get_args

import torch
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.mapped_table import Kept
from vispath_lit.models.texts.chain_states import ChainStates
from vispath_lit.models.texts.distill import DistillSettings, composers_for
from vispath_lit.models.texts.edge_table import EdgeTable
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.protocols import TextEncoder, TextStage
from vispath_lit.types import Paths, Rows

log = logging.getLogger(__name__)


class Composed:
    """A provider of one stage, and the first stage of `TwoStage`. Frozen: the vectors carry no gradient.

    Args:
        cache_dir: where composers and the composed edges of a graph are kept.
        composer: `auto` uses the composers of this graph and encoder, and distils them where there are none
            yet; else the path of a composer file, which may have been distilled on another graph.
        keep: times the beam width that this stage passes on; None where it decides.
        texts: texts a question that the next stage may embed; None for no bound.
        table_mb: megabytes on disk for the composed edges, and in memory for the parts of chains; a graph
            that needs more is composed on the fly.
        settings: of the distillation.
        whole_labels: embed the labels of all entities at once and keep them in a file, so that a search
            embeds nothing but its question; otherwise a label is embedded when a search first meets it.
        kept: numbers of composed edges and kept labels; `int8` takes half the space of `float16`.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        cache_dir: Path | str,
        composer: str = "auto",
        keep: int | None = None,
        table_mb: int = 2048,
        settings: DistillSettings | None = None,
        whole_labels: bool = False,
        kept: Kept = "float16",
        texts: int | None = None,
    ) -> None:
        if kept not in get_args(Kept):
            raise ConfigError(f"texts kept is {kept!r}; expected one of {', '.join(get_args(Kept))}")
        self.keep = keep
        self.texts = texts
        found = composers_for(graph, text_encoder, Path(cache_dir), composer, settings or DistillSettings())
        self.report = found.report
        limit = table_mb << 20
        cache, ending = Path(cache_dir), "" if kept == "float16" else f"-{kept}"
        of_graph = f"{graph.fingerprint}-{text_encoder.fingerprint}{ending}.npy"
        labels = LabelVectors(
            graph, text_encoder, cache / "labels" / of_graph if whole_labels else None, kept
        )
        file = cache / "composed" / f"{found.fingerprint}-{of_graph}"
        self._edges = EdgeTable(graph, labels, found.edge, file, limit, kept)
        self._chains = ChainStates(labels, found.chain, limit)

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self,)

    @property
    def whole_edges(self) -> bool:
        """Whether all edges of the graph are composed and kept; otherwise each call composes its own."""
        return self._edges.table is not None

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        """A vector for each of `[E]` (signed relation, tail) pairs; equal pairs share a row."""
        return self._edges.rows(relation.cpu(), tail.cpu())

    def chain_vectors(self, chains: Paths) -> Rows:
        """A vector for each of C chains."""
        vectors = self._chains.vectors(chains.entities.cpu(), chains.relations.cpu())
        return Rows(vectors, torch.arange(len(chains)))
