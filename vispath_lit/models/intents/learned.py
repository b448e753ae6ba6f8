"""Eq. 4 learned from words and picture: q = SBERT(Q) + W h, one h a partial path, W zero at the start.

h comes from a small decoder over the partial path's steps that reads the token states of the question, so
that each step can find its words and what is left of the question is the intent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.attention import DecoderLayer, EncoderLayer
from vispath_lit.models.backbones.forwards import count_forward
from vispath_lit.models.features import GraphFeatures, StepEmbedding
from vispath_lit.models.frozen import frozen, hide_words
from vispath_lit.models.intents.once import once
from vispath_lit.models.intents.picture import PictureReader, Seen
from vispath_lit.models.residual import Correction
from vispath_lit.protocols import Backbone, ImageEncoder, NeighbourhoodEncoder, TextEncoder
from vispath_lit.types import Intents, Paths, Query, States

DEEPEST = 16


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """What the intent model reads before any path: one entry a question.

    Attributes:
        question: `[S, d]`, SBERT(Q).
        memory: for each layer of the decoder its keys and values `[S, L, 2 * width]`.
        mask: `[S, L]` bool, True is something.
        seen: what the pictures tell by themselves, where they are looked at.
    """

    question: Tensor
    memory: Sequence[Tensor]
    mask: Tensor
    seen: Seen | None = None

    def select(self, rows: Tensor) -> Reading:
        """The questions at `rows`, `[n]` long."""
        rows = rows.to(self.mask.device)
        memory = [layer.index_select(0, rows) for layer in self.memory]
        seen = None if self.seen is None else Seen(*(part[rows] for part in self.seen))
        return Reading(self.question[rows], memory, self.mask[rows], seen)


class LearnedIntent(nn.Module):
    """The learned `IntentModel`. Equals the fixed one until it is trained.

    Pictures come in two ways, which can be combined: a `PictureReader` tells of frozen features what the
    words may trust, and a vision-language backbone reads picture and question together, once, in place of the
    frozen text encoder; paths are the decoder's matter.

    Args:
        image_encoder: its frozen vectors are what the `PictureReader` sees of a picture.
        vlm: a backbone with an adapter; its hidden states are what the decoder reads.
        neighbourhood: what pictures are asked to say of the entities on the way; held by others.
        width: of the decoder.
        layers: of the decoder.
        reader_layers: over the hidden states, before the decoder reads them.
        heads: of each attention; divides `width`.
        dropout: of residual branches.
        word_dropout: share of question tokens hidden in training.
        image_tokens: questions that are put to a picture's cells; 0 reads the words alone (the paper's "w/o
            visual intent").
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        image_encoder: ImageEncoder | None = None,
        vlm: Backbone | None = None,
        neighbourhood: NeighbourhoodEncoder | None = None,
        width: int = 192,
        layers: int = 2,
        reader_layers: int = 1,
        heads: int = 4,
        dropout: float = 0.1,
        word_dropout: float = 0.0,
        image_tokens: int = 0,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ConfigError(
                f"intent.width is {width}; it must be a multiple of intent.heads, which is {heads}"
            )
        if image_tokens and image_encoder is None:
            raise ConfigError(f"intent.image_tokens is {image_tokens}, but there is no image encoder")
        self._frozen = (graph, text_encoder)
        # A part of its own, which is trained and saved under its own name.
        self._vlm = (vlm if vlm is not None and vlm.dim else None,)
        self.width = width
        self.word_dropout = word_dropout
        self.image_tokens = image_tokens
        self.features = GraphFeatures(graph, text_encoder)
        self.steps = StepEmbedding(self.features, width)
        read = text_encoder.dim if self._vlm[0] is None else self._vlm[0].dim
        self.tokens = nn.Sequential(nn.Linear(read, width), nn.LayerNorm(width))
        self.reader = nn.ModuleList(EncoderLayer(width, heads, dropout) for _ in range(reader_layers))
        if image_encoder is not None and image_tokens:
            facts = getattr(neighbourhood, "fact_relation", torch.zeros(0, dtype=torch.long))
            shares = getattr(neighbourhood, "fact_share", torch.zeros(len(facts)))
            near = 0 if len(facts) or neighbourhood is None else neighbourhood.dim
            self._reader = partial(
                PictureReader, image_encoder, width, heads, image_tokens, dropout, facts, shares, near
            )
            self.picture = self._reader()
        self.position = nn.Embedding(DEEPEST + 2, width)
        self.ask = nn.Parameter(torch.randn(width) * 0.1)
        self.decoder = nn.ModuleList(DecoderLayer(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = Correction(width, text_encoder.dim, bias=False)
        nn.init.normal_(self.position.weight, std=0.1)

    def read(self, queries: Sequence[Query]) -> Reading:
        """Everything that does not depend on a path, once a question."""
        encoder, device = self._frozen[1], self.ask.device
        texts = [query.text for query in queries]
        with frozen():
            question = encoder.encode(texts).to(device)
        states, mask = self._states(queries)
        mask = hide_words(mask, self.word_dropout if self.training else 0.0)
        read = self.tokens(states)
        for reader in self.reader:
            read = reader(read, mask)
        seen = self.picture(queries, self.steps.relation_table()) if self.image_tokens else None
        layers = [cast(DecoderLayer, layer) for layer in self.decoder]
        return Reading(question, [layer.shared.project(read) for layer in layers], mask, seen)

    def _states(self, queries: Sequence[Query]) -> tuple[Tensor, Tensor]:
        """Hidden states `[S, L, d]`, of the backbone where there is one, and their mask `[S, L]`."""
        device = self.ask.device
        if (vlm := self._vlm[0]) is None:
            with frozen():
                states, mask = self._frozen[1].tokens([query.text for query in queries])
        else:
            states, mask = vlm(queries, [""] * len(queries))
            count_forward(queries)
        return states.to(device), mask.to(device)

    def recall(self, queries: Sequence[Query]) -> Reading:
        """As `read`, but each question once a search."""
        return once(self, self.read, queries)

    @property
    def sees(self) -> bool:
        """Whether pictures make a difference."""
        return bool(self.image_tokens) or self._vlm[0] is not None

    def forget_pictures(self) -> None:
        """The picture's reader as one that nothing was taught."""
        self.picture.load_state_dict(self._reader().state_dict())

    def forward(self, states: States, reading: Reading | None = None) -> Intents:
        """Intents of P partial paths; `reading` where the questions have been read before."""
        read = self.recall(states.queries) if reading is None else reading
        hidden = self.hidden(states.paths, read)
        state = states.paths.state.to(hidden.device)
        vectors = read.question[state] + self.out(hidden)
        relations, near = None, None
        if read.seen is not None:
            relations, near = self.picture.told(read.seen, state, hidden, self.steps.relation_table())
        return Intents(vectors, read.question, [""] * len(states), hidden, relations, near)

    def hidden(self, paths: Paths, read: Reading) -> Tensor:
        """What each partial path makes of its question: h `[P, width]`; `paths.state` is a row of `read`."""
        row = paths.state.to(read.question.device)
        place = torch.arange(len(row), device=row.device) - torch.searchsorted(row, row)
        slots = int(place.max()) + 1 if len(row) else 1
        x = self._embed(paths)
        for number, (layer, memory) in enumerate(zip(self.decoder, read.memory, strict=True), 1):
            x = layer(x, memory, read.mask, row * slots + place, slots, number == len(self.decoder))
        last: Tensor = self.norm(x[:, -1])
        return last

    def phrases(self, intents: Tensor, top: int = 3) -> list[str]:
        """For people: the relation labels nearest to each of `[P, d]` intent vectors, best first."""
        graph = self._frozen[0]
        near = F.normalize(intents, dim=1) @ self.features.relations.T
        best = near.topk(min(top, near.shape[1]), dim=1).indices.tolist()
        return ["; ".join(graph.relation_label(r) for r in row) for row in best]

    def _embed(self, paths: Paths) -> Tensor:
        """`[P, d + 2, width]`: the start, each step, and the place that asks for the next one."""
        device = self.ask.device
        relations, types = self.steps.relation_table(), self.steps.type_table()
        x = F.embedding(self.features.type_of[paths.entities.to(device)], types)
        walked = F.embedding(paths.relations.to(device), relations)
        x = x + torch.cat([torch.zeros_like(x[:, :1]), walked], dim=1)
        x = torch.cat([x, (x[:, -1] + self.ask)[:, None]], dim=1)
        where = torch.arange(x.shape[1], device=device).clamp(max=DEEPEST)
        where[-1] = DEEPEST + 1
        placed: Tensor = x + self.position(where)
        return placed
