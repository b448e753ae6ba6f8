"""ComplEx (Trouillon et al. 2016): entities and relations as complex vectors, pre-trained on the triples.

A triple scores Re(<h, r, conj(t)>). With real and imaginary parts side by side, `[re | im]`, all tails of
(h, r) are scored by one matrix product, as the score is a plain dot product of h ∘ r with t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch_geometric.nn.kge import ComplEx

from vispath_lit.errors import ConfigError, at_least
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track


@dataclass(frozen=True, slots=True)
class ComplexSettings:
    """How the triples are learned.

    Attributes:
        dim: complex dimensions; an entity is twice as many numbers.
        epochs: passes over the triples.
        batch: triples a step.
        negatives: entities drawn for each step, against which all of its triples are ranked.
        lr: learning rate of Adagrad.
    """

    dim: int = 200
    epochs: int = 20
    batch: int = 1024
    negatives: int = 256
    lr: float = 0.1

    def __post_init__(self) -> None:
        at_least(1, "system.embedding", dim=self.dim, batch=self.batch, negatives=self.negatives)
        at_least(0, "system.embedding", epochs=self.epochs)
        if not 0 < self.lr < math.inf:
            raise ConfigError(f"system.embedding.lr is {self.lr}; expected more than 0")


def compose(heads: Tensor, relations: Tensor) -> Tensor:
    """The product h ∘ r, whose dot product with t is Re(<h, r, conj(t)>).

    Args:
        heads: `[..., 2k]`, real parts first.
        relations: `[..., 2k]`.
    """
    (head_re, head_im), (re, im) = heads.chunk(2, dim=-1), relations.chunk(2, dim=-1)
    return torch.cat([head_re * re - head_im * im, head_im * re + head_re * im], dim=-1)


def compose_inverse(tails: Tensor, relations: Tensor) -> Tensor:
    """The product conj(r) ∘ t, `[..., 2k]`, whose dot product with h is Re(<h, r, conj(t)>)."""
    re, im = relations.chunk(2, dim=-1)
    return compose(tails, torch.cat([re, -im], dim=-1))


def train_complex(graph: KnowledgeGraph, settings: ComplexSettings, seed: int) -> Tensor:
    """`[N, 2k]` entity vectors, trained to rank each triple's ends above drawn entities.

    Each step ranks the tails of its triples, and their heads, against one shared draw of entities; a drawn
    entity that is the true end itself is left out.
    """
    triples = _triples(graph)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ComplEx(graph.num_entities, graph.num_relations, settings.dim, sparse=True)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=settings.lr)
    generator = torch.Generator().manual_seed(seed)
    for _ in track(range(settings.epochs), f"embedding {len(triples)} triples"):
        for rows in torch.split(torch.randperm(len(triples), generator=generator), settings.batch):
            drawn = torch.randint(graph.num_entities, (settings.negatives,), generator=generator)
            optimizer.zero_grad()
            with torch.sparse.check_sparse_tensor_invariants(False):  # type: ignore[no-untyped-call]
                # Said, or torch warns once.
                _loss(model, triples[rows], drawn).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    return torch.cat([model.node_emb.weight, model.node_emb_im.weight], dim=1).detach()


def _triples(graph: KnowledgeGraph) -> Tensor:
    """`[T, 3]` head, relation, tail."""
    heads = np.repeat(np.arange(graph.num_entities), np.diff(graph.out_indptr))
    columns = [heads, graph.out_relation, graph.out_tail]
    return torch.from_numpy(np.stack([np.asarray(column, dtype=np.int64) for column in columns], axis=1))


def _loss(model: ComplEx, triples: Tensor, drawn: Tensor) -> Tensor:
    """Cross-entropy of the true tails and of the true heads among themselves and the drawn entities."""
    head, relation, tail = triples.unbind(1)
    heads, tails, others = (_vectors(model, rows) for rows in (head, tail, drawn))
    relations = torch.cat([model.rel_emb(relation), model.rel_emb_im(relation)], dim=1)
    total = head.new_zeros((), dtype=torch.float32)
    for query, ends, true in (
        (compose(heads, relations), tails, tail),
        (compose_inverse(tails, relations), heads, head),
    ):
        wrong = (query @ others.T).masked_fill(true[:, None] == drawn, -torch.inf)
        logits = torch.cat([(query * ends).sum(dim=1, keepdim=True), wrong], dim=1)
        total = total + cross_entropy(logits, torch.zeros_like(true))
    return total


def _vectors(model: ComplEx, rows: Tensor) -> Tensor:
    """`[n, 2k]` of entities."""
    return torch.cat([model.node_emb(rows), model.node_emb_im(rows)], dim=1)
