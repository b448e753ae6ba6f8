"""What the neighbourhood encoders share: the ego-graph's features, and the table of all entities' vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor, nn

from vispath_lit.errors import CheckpointError, ConfigError, at_least
from vispath_lit.kg.neighbourhoods import MOST, sample
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.frozen import frozen
from vispath_lit.models.neighbourhoods.table import VectorTable
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Rows

VERSION = 1  # of what the encoders compute from equal weights


class EgoGraphEncoder(nn.Module):
    """A trained `NeighbourhoodEncoder` over sampled ego-graphs; a subclass mixes the messages.

    A neighbour is its label and type, an edge its relation's label and direction, the centre its type alone:
    what else it is like, its neighbours have to tell. No weight belongs to an entity or a relation.

    Args:
        cache_dir: where the vectors of all entities are kept, by the content of weights and graph.
        dim: k, numbers of a vector.
        width: of nodes and edges inside.
        edges: of an ego-graph, at most; of each relation about as many.
        dropout: of what the neighbours say.
        refresh: training steps after which vectors without a gradient are encoded anew.
        table_mb: megabytes of the vectors of all entities; a graph that needs more is encoded as it is asked.
        seed: of the sampled edges.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        cache_dir: Path | str,
        dim: int = 64,
        width: int = 128,
        edges: int = 128,
        dropout: float = 0.1,
        refresh: int = 10,
        table_mb: int = 64,
        seed: int = 0,
    ) -> None:
        super().__init__()
        at_least(1, "neighbourhood", dim=dim, width=width, refresh=refresh)
        if not 1 <= edges <= MOST:
            raise ConfigError(f"neighbourhood.edges is {edges}; expected 1 to {MOST}")
        self._frozen = (graph, LabelVectors(graph, text_encoder))
        self.dim, self.width, self.edges, self.every, self.seed = dim, width, edges, refresh, seed
        self.features = GraphFeatures(graph, text_encoder)
        self.steps = StepEmbedding(self.features, width)
        self.of_label = nn.Linear(text_encoder.dim, width)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, dim))
        self._whole = graph.num_entities * dim * 2 <= table_mb << 20
        self._table = VectorTable(self._without_gradient, graph.num_entities, dim)
        self._folder = Path(cache_dir) / "neighbourhoods"
        self._loaded: tuple[int, ...] = ()
        self.register_load_state_dict_post_hook(_remember_loaded)  # type: ignore[no-untyped-call]

    @abstractmethod
    def mix(
        self, nodes: Tensor, centres: Tensor, relations: Tensor, edges: Tensor, relation: Tensor
    ) -> Tensor:
        """`[n, width]`: what each centre hears from its neighbours.

        Args:
            nodes: `[U, width]` distinct neighbours.
            centres: `[n, width]`.
            relations: `[2R, width]`.
            edges: `[2, M]` long: the neighbour among the nodes, and the centre, ascending.
            relation: `[M]` long, signed, from the centre to the neighbour.
        """

    def encode(self, entities: Tensor) -> Tensor:
        """`[n, k]` of `[n]` entities with the weights as they are, with a gradient."""
        graph, labels = self._frozen
        device = self.of_label.weight.device
        ego = sample(graph, entities.cpu().numpy(), self.edges, self.seed)
        distinct, place = np.unique(ego.neighbour, return_inverse=True)
        with frozen():
            known = labels.entities(torch.from_numpy(distinct)).to(device) * self.features.dim**0.5
        types, type_of = self.steps.type_table(), self.features.type_of
        nodes = self.of_label(known) + types.index_select(0, type_of[torch.from_numpy(distinct).to(device)])
        centres = types.index_select(0, type_of[entities.to(device)])
        edges = torch.from_numpy(np.stack([place, ego.centre])).to(device)
        relation = torch.from_numpy(ego.relation).to(device)
        heard = self.mix(nodes, centres, self.steps.relation_table(), edges, relation)
        vectors: Tensor = self.out(centres + self.drop(heard))
        return vectors

    def rows(self, entities: Tensor) -> Rows:
        """The vectors of `[n]` entities without a gradient.

        In training they may be `refresh` steps old (those that a validation encoded are not used); else they
        are those of the weights as they are.
        """
        asked, device = entities.cpu(), self.of_label.weight.device
        self._table.forget(None if self.training else self._weights())
        if self.training or not self._whole:
            table = self._table.some(asked.numpy())
        else:
            table = self._table.all(self._file() if self._weights() == self._loaded else None)
        if device.type == "cpu":
            return Rows(torch.from_numpy(table), asked)
        gathered = torch.from_numpy(table[asked.numpy()]).to(device)
        return Rows(gathered, torch.arange(len(asked), device=device))

    def refresh(self, step: int) -> None:
        """Before each training step of an epoch, from 0: forgets vectors that have become old."""
        if step % self.every == 0:
            self._table.clear()

    def remembered(self) -> dict[str, Tensor]:
        """The vectors that following training steps use again, of older weights; empty where none are."""
        known = self._table.known(None)
        return (
            {}
            if known is None
            else {"entities": torch.from_numpy(known[0]), "vectors": torch.from_numpy(known[1])}
        )

    def remember(self, state: Mapping[str, Tensor]) -> None:
        """Takes up what `remembered` gave.

        Raises:
            CheckpointError: it is not of this graph and encoder, or damaged.
        """
        if not state:
            return
        parts = [state.get(key) for key in ("entities", "vectors")]
        known = [
            x.numpy() for x in parts if isinstance(x, Tensor) and x.dtype in (torch.int64, torch.float16)
        ]
        if len(known) != len(parts) or not self._table.fits(known[0], known[1]):
            raise CheckpointError(
                "the checkpoint's neighbourhood vectors are damaged or of another graph: "
                "say transfer=true to start from its weights alone"
            )
        self._table.fill(None, known[0], known[1])

    def _without_gradient(self, entities: NDArray[np.int64]) -> NDArray[Any]:
        before = self.training
        nn.Module.eval(self)
        try:
            with frozen():
                return self.encode(torch.from_numpy(entities)).cpu().numpy()
        finally:
            self.train(before)

    def _weights(self) -> tuple[int, ...]:
        """Changes whenever a weight does."""
        return tuple(weight._version for weight in self.parameters())

    def _file(self) -> Path:
        """Named by all that the vectors follow from."""
        graph, labels = self._frozen
        digest = xxhash.xxh3_128(
            f"{VERSION} {type(self).__name__} {self.edges} {self.seed} {graph.fingerprint} "
            f"{labels.text_encoder.fingerprint}".encode()
        )
        state: Mapping[str, Tensor] = self.state_dict()
        for name, value in sorted(state.items()):
            digest.update(f"{name} {tuple(value.shape)}".encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return self._folder / f"{digest.hexdigest()}.npy"


def _remember_loaded(encoder: EgoGraphEncoder, keys: object) -> None:
    """Weights from a checkpoint are finished ones: what is encoded with them is worth a file."""
    encoder._loaded = encoder._weights()
