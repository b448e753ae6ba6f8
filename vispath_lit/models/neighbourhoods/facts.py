"""The facts that many entities share, one number each: what a picture's colours can be held against."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import ranges
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.neighbourhoods.table import VectorTable
from vispath_lit.types import Rows

CHUNK = 1 << 22  # edges looked at together


class CommonFacts:
    """A `NeighbourhoodEncoder` without weights: 1 where an entity has a fact (relation, tail) of the list.

    Of each relation the tails that most entities share are listed, so that the colours of flags stand beside
    the countries of cities. Two graphs have different lists, so weights over them fit one graph alone.

    Args:
        tails: of a relation, at most.
        least: entities that share a fact, at least.
        most: facts in all, at most.

    Attributes:
        fact_relation: `[k]` long, the relation of each fact.
        fact_share: `[k]`, of the entities with its relation the share that has the fact.
    """

    def __init__(self, graph: KnowledgeGraph, tails: int = 12, least: int = 8, most: int = 512) -> None:
        if tails < 1 or least < 2 or most < 1:
            raise ConfigError(
                f"neighbourhood.tails is {tails}, least {least} and most {most}; expected at least 1, 2 and 1"
            )
        self.graph = graph
        self.keys, shared = common_facts(graph, tails, least, most)
        self.dim = len(self.keys)
        self.fact_relation = torch.from_numpy(self.keys // graph.num_entities)
        heads = torch.from_numpy(_heads(graph))
        self.fact_share = (torch.from_numpy(shared) / heads[self.fact_relation]).float()
        self._table = VectorTable(self._facts, graph.num_entities, self.dim)

    def rows(self, entities: Tensor) -> Rows:
        """`[n, k]` zeros and ones."""
        asked = entities.cpu()
        return Rows(torch.from_numpy(self._table.some(asked.numpy())), asked)

    def encode(self, entities: Tensor) -> Tensor:
        """The same, `[n, k]` float32; there is nothing to be trained."""
        return self.rows(entities).dense().float()

    def refresh(self, step: int) -> None:
        """Nothing grows old."""

    def named(self) -> list[str]:
        """The facts for people, such as "flag colour red"."""
        graph = self.graph
        pairs = [divmod(int(key), graph.num_entities) for key in self.keys]
        return [f"{graph.relation_label(r)} {graph.label(e)}" for r, e in pairs]

    def _facts(self, entities: NDArray[np.int64]) -> NDArray[np.float16]:
        graph = self.graph
        start = graph.out_indptr[entities]
        row, edge = ranges(start, graph.out_indptr[entities + 1] - start)
        key = graph.out_relation[edge].astype(np.int64) * graph.num_entities + graph.out_tail[edge]
        place = np.searchsorted(self.keys, key).clip(max=max(self.dim - 1, 0))
        found = self.keys[place] == key if self.dim else np.zeros(len(key), dtype=bool)
        rows = np.zeros((len(entities), self.dim), dtype=np.float16)
        rows[row[found], place[found]] = 1.0
        return rows


def common_facts(
    graph: KnowledgeGraph, tails: int, least: int, most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`[k]` ascending `relation * N + tail` of the facts that count, and how many entities share each.

    Ties go to the lower entity. Of more than `most` the most shared tail of every relation comes first,
    then every second one.
    """
    keys, shared = _shared(graph)
    keys, shared = keys[shared >= least], shared[shared >= least]
    relation = keys // graph.num_entities
    order = np.lexsort((keys, -shared, relation))
    place = np.arange(len(keys)) - np.searchsorted(relation[order], relation[order])
    kept, rank = order[place < tails], place[place < tails]
    first = np.lexsort((keys[kept], -shared[kept], rank))[:most]
    rows = kept[first]
    rows = rows[np.argsort(keys[rows])]
    return keys[rows], shared[rows]


def _heads(graph: KnowledgeGraph) -> NDArray[np.int64]:
    """`[R]`, how many entities have a triple of each relation.

    Triples are stored by head and then by relation, so that those of one head and relation are neighbours.
    """
    count = np.zeros(graph.num_relations, dtype=np.int64)
    last = -1
    for low in range(0, graph.num_triples, CHUNK):
        edge = np.arange(low, min(low + CHUNK, graph.num_triples))
        head = np.searchsorted(graph.out_indptr, edge, side="right") - 1
        key = head * graph.num_relations + graph.out_relation[edge].astype(np.int64)
        first = np.diff(key, prepend=last) != 0  # a head and relation may lie in two chunks
        count += np.bincount(key[first] % graph.num_relations, minlength=graph.num_relations)
        last = int(key[-1])
    return count


def _shared(graph: KnowledgeGraph) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`[m]` distinct `relation * N + tail` of all triples, and how many entities share each.

    Triples are stored by tail and then by relation, so that those of one fact are neighbours.
    """
    keys, counts = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for low in range(0, graph.num_triples, CHUNK):
        edge = np.arange(low, min(low + CHUNK, graph.num_triples))
        tail = np.searchsorted(graph.in_indptr, edge, side="right") - 1
        key = graph.in_relation[edge].astype(np.int64) * graph.num_entities + tail
        first = np.flatnonzero(np.diff(key, prepend=-1))
        keys.append(key[first])
        counts.append(np.diff(first, append=len(key)))
    every, count = np.concatenate(keys), np.concatenate(counts)
    first = np.flatnonzero(np.diff(every, prepend=-1))  # a fact may lie in two chunks
    return every[first], np.add.reduceat(count, first) if len(first) else count
