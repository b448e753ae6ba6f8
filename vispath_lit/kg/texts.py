"""The texts of edges and chains that the encoders read (Eq. 5 and Eq. 8)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from torch import Tensor

from vispath_lit.kg.csr import Ints
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Path, Paths


def edge_texts(
    graph: KnowledgeGraph, relation: Sequence[int] | Ints | Tensor, tail: Sequence[int] | Ints | Tensor
) -> list[str]:
    """Eq. 5's "r ‖ e_t" for `[E]` edges: the label of the signed relation, a space, the tail's label."""
    names = graph.relation_labels()
    signed = np.asarray(relation, dtype=np.int64).tolist()
    return [f"{names[r]} {label}" for r, label in zip(signed, graph.labels(tail), strict=True)]


def verbalize(graph: KnowledgeGraph, chains: Paths | Sequence[Path]) -> list[str]:
    """Eq. 8's Verbalize(p): the start's label, then every relation's and entity's label, joined by spaces."""
    if isinstance(chains, Paths):
        entities: list[list[int]] = chains.entities.tolist()
        relations: list[list[int]] = chains.relations.tolist()
    else:
        entities = [list(path.entities) for path in chains]
        relations = [list(path.relations) for path in chains]
    names = graph.relation_labels()
    flat = np.fromiter(chain.from_iterable(entities), dtype=np.int64)
    labels = iter(graph.labels(flat))
    return [" ".join(_words(labels, names, steps)) for steps in relations]


def chain_words(graph: KnowledgeGraph, chains: Sequence[Path]) -> list[str]:
    """Chains for people and language models: "France -[capital]-> Paris"; a path of no steps is its start."""
    names = graph.relation_labels()
    labels = iter(graph.labels([entity for path in chains for entity in path.entities]))
    return [
        next(labels) + "".join(f" -[{names[signed]}]-> {next(labels)}" for signed in path.relations)
        for path in chains
    ]


def fact(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> str:
    """A step along a signed relation as "subject, relation, object", the way round in which it is held."""
    if relation >= graph.num_relations:
        head, tail, relation = tail, head, relation - graph.num_relations
    return f"{graph.label(head)}, {graph.relation_label(relation)}, {graph.label(tail)}"


def _words(labels: Iterator[str], names: list[str], steps: list[int]) -> Iterator[str]:
    yield next(labels)
    for signed in steps:
        yield names[signed]
        yield next(labels)
