"""Exact text vectors: every edge and chain text through the encoder itself, cached on disk by content."""

from __future__ import annotations

import torch
from torch import Tensor

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.protocols import TextEncoder, TextStage
from vispath_lit.types import Paths, Rows


class Exact:
    """SBERT(r ‖ e_t) of Eq. 5 and SBERT(Verbalize(p)) of Eq. 8 to the letter: a provider of one stage.

    Frozen: the vectors carry no gradient.
    """

    keep: int | None = None  # the last stage: it decides
    texts: int | None = None

    def __init__(self, graph: KnowledgeGraph, text_encoder: TextEncoder) -> None:
        self.graph = graph
        self.text_encoder = text_encoder

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self,)

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        """A vector for each of `[E]` (signed relation, tail) pairs; equal pairs share a row."""
        relations = 2 * self.graph.num_relations
        pairs, index = torch.unique(tail * relations + relation, return_inverse=True)
        texts = edge_texts(self.graph, pairs % relations, pairs // relations)
        return Rows(self.text_encoder.encode(texts), index)

    def chain_vectors(self, chains: Paths) -> Rows:
        """A vector for each of C chains."""
        vectors = self.text_encoder.encode(verbalize(self.graph, chains))
        return Rows(vectors, torch.arange(len(chains)))
