"""The values that pass between the parts: questions, paths, evidence, predictions.

Two kinds live here. Records about one question are frozen dataclasses of plain Python values.
Batches are flat tensors (`Paths`, `Frontier`, `Rows`): P partial paths, E candidate edges and
C chains of many questions lie one behind the other, with an index that says whose they are.

A *signed relation* is an integer in `[0, 2R)`: `r < R` walks a stored triple forwards, `r >= R` walks
a triple of relation `r - R` backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Generic, Literal, TypeVar

import torch
from PIL.Image import Image
from pydantic import BaseModel
from torch import Tensor

Provenance = Literal["stopped", "fallback", "terminal", "image_only", "abstained", "failed"]
GoldPath = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Question:
    """One line of a question file (DESIGN section 3). Only data, training and evaluation see it.

    Attributes:
        image: absolute path of the picture, or None.
        answers: accepted strings; empty where the file holds none (prediction only).
        gold_paths: per path the (relation id, entity id) steps from the topic; a relation id that
            starts with `~` is walked backwards.
    """

    id: str
    text: str
    image: FilePath | None = None
    answers: tuple[str, ...] = ()
    answer_ids: tuple[str, ...] = ()
    topic_entity: str | None = None
    gold_paths: tuple[GoldPath, ...] = ()
    hops: int | None = None
    split: str | None = None
    tags: tuple[str, ...] = ()
    meta: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """All that a system may know of a question: its words, its pixels, and what a protocol grants.

    Attributes:
        topic: the start entity, in the "given start" tables only.
        depth: the number of hops, in the "gold depth given" rows only.
    """

    text: str
    image: Image | None = None
    topic: int | None = None
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    """What the words of a question tell before any search.

    Attributes:
        expression: the words that refer to the image ("the country whose flag is shown").
        head: their bare head noun ("country"); all that recognition may use (Eq. 1).
        sketch: the coarse relation-level plan S_Q as text; empty where there is none.
        depth: probability of 1, 2, ... D_max hops.
    """

    expression: str
    head: str
    sketch: str
    depth: tuple[float, ...]

    @property
    def hops(self) -> int:
        """The predicted depth D^ >= 1: the most probable one, the smaller on a tie."""
        return max(range(len(self.depth)), key=lambda i: (self.depth[i], -i)) + 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible start entity, with the score and the origin that brought it here."""

    entity: int
    score: float
    origin: Literal["topic", "image", "name"]


@dataclass(frozen=True, slots=True)
class Path:
    """One walk `(e_0, r_1, e_1, ..., r_d, e_d)` with its chain score.

    Attributes:
        entities: d + 1 entity indices.
        relations: d signed relations.
    """

    entities: tuple[int, ...]
    relations: tuple[int, ...]
    score: float = 0.0

    @property
    def end(self) -> int:
        return self.entities[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """P partial paths of equal length d.

    Attributes:
        entities: `[P, d + 1]` long.
        relations: `[P, d]` long, signed.
        state: `[P]` long, the question (state) of each path; non-decreasing.
        scores: `[P]` float, the score that kept the path (0 for a start).
        log_likelihood: `[P]` float, the sum over its steps of the log-softmax of the edge logit among the
            question's scored edges of that hop; None where nobody counted.
    """

    entities: Tensor
    relations: Tensor
    state: Tensor
    scores: Tensor
    log_likelihood: Tensor | None = None

    def __len__(self) -> int:
        return int(self.state.shape[0])

    @property
    def length(self) -> int:
        """Hops walked so far, d."""
        return int(self.relations.shape[1])

    @property
    def ends(self) -> Tensor:
        """`[P]` endpoint of each path."""
        return self.entities[:, -1]

    @classmethod
    def starts(cls, entities: Tensor, state: Tensor) -> Paths:
        """Paths of length 0 from `[P]` start entities."""
        return cls(
            entities[:, None],
            entities.new_zeros((len(entities), 0)),
            state,
            torch.zeros(len(entities)),
            torch.zeros(len(entities)),
        )

    def select(self, rows: Tensor, scores: Tensor | None = None) -> Paths:
        """The paths at `rows` (`[C]` long), in that order, with new scores where given."""
        kept = self.scores[rows] if scores is None else scores
        likelihood = None if self.log_likelihood is None else self.log_likelihood[rows]
        return Paths(self.entities[rows], self.relations[rows], self.state[rows], kept, likelihood)

    def extend(self, parent: Tensor, relation: Tensor, tail: Tensor) -> Paths:
        """Eq. 6: path `parent[c]` with one more step `(relation[c], tail[c])`; keeps the parents' values."""
        return Paths(
            torch.cat([self.entities[parent], tail[:, None]], dim=1),
            torch.cat([self.relations[parent], relation[:, None]], dim=1),
            self.state[parent],
            self.scores[parent],
            None if self.log_likelihood is None else self.log_likelihood[parent],
        )

    def records(self) -> list[Path]:
        """The same paths as plain records."""
        # Through numpy, whose tolist() is many times as fast.
        columns = (self.entities, self.relations, self.scores.detach())
        entities, relations, scores = (column.cpu().numpy().tolist() for column in columns)
        return [Path(tuple(e), tuple(r), s) for e, r, s in zip(entities, relations, scores, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Frontier:
    """E candidate edges that leave the endpoints of P partial paths.

    Attributes:
        paths: the P partial paths.
        edge_path: `[E]` long, the path that an edge would extend; non-decreasing.
        relation: `[E]` long, signed.
        tail: `[E]` long.
    """

    paths: Paths
    edge_path: Tensor
    relation: Tensor
    tail: Tensor

    def __len__(self) -> int:
        return int(self.tail.shape[0])

    def select(self, rows: Tensor) -> Frontier:
        """The edges at `rows`, in that order."""
        return Frontier(self.paths, self.edge_path[rows], self.relation[rows], self.tail[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A table of distinct vectors and who uses which: item i has `vectors[index[i]]`.

    Attributes:
        vectors: `[U, d]` float32, unit rows.
        index: `[n]` long into the table.
    """

    vectors: Tensor
    index: Tensor

    def dense(self) -> Tensor:
        """`[n, d]`: one vector an item."""
        return self.vectors[self.index]


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """S questions at one hop, each with its kept partial paths.

    Attributes:
        queries: S queries.
        analyses: S analyses.
        paths: P partial paths; `paths.state` points into the S questions.
    """

    queries: Sequence[Query]
    analyses: Sequence[Analysis]
    paths: Paths

    def __len__(self) -> int:
        return len(self.queries)


@dataclass(frozen=True, slots=True, eq=False)
class Intents:
    """What the next step should look for (Eq. 4).

    Attributes:
        vectors: `[P, d]`, one intent a partial path.
        question: `[S, d]`, SBERT(Q) of each state.
        texts: S texts: the intent in words, empty where it is the question itself.
        hidden: `[P, width]`, what a learned intent was made from; None for others.
        relations: `[P, 2R]` logits of the next signed relation that a picture gives; None without one.
        near: `[P, k]`, the same for each number of the tail's neighbourhood.
    """

    vectors: Tensor
    question: Tensor
    texts: Sequence[str]
    hidden: Tensor | None = None
    relations: Tensor | None = None
    near: Tensor | None = None

    def of(self, paths: slice) -> Intents:
        """The intents of neighbouring partial paths; questions stay as they are."""

        def some(rows: Tensor | None) -> Tensor | None:
            return None if rows is None else rows[paths]

        return Intents(
            self.vectors[paths],
            self.question,
            self.texts,
            some(self.hidden),
            some(self.relations),
            some(self.near),
        )


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a judge makes of the kept paths of one question at one hop (Eq. 9-10)."""

    statement: str
    answerability: float
    answer: str | None
    answer_entity: int | None
    paths: tuple[Path, ...]
    hop: int


@dataclass(frozen=True, slots=True)
class HopTrace:
    """What one hop of the search did, for reports and for "gold pruned at hop k".

    Attributes:
        edges: edges on the frontier before Eq. 5's cut.
        discovered: P_cand, the paths after Eq. 5-6.
        chains: the M2 best by Eq. 8, best first.
        kept: the M3 kept paths, best first.
        answerability: of the kept evidence, in [0, 1].
    """

    intent: str
    edges: int
    discovered: tuple[Path, ...]
    chains: tuple[Path, ...]
    kept: tuple[Path, ...]
    answerability: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a question cost.

    Calls and tokens are what the method takes: an answer from the cache counts like a fresh one, a request
    that had to be sent again counts once. Seconds are a batch's wall time divided by its questions.
    """

    llm_calls: int = 0
    vlm_calls: int = 0
    text_tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Prediction:
    """The one answer that each question gets, with its evidence and where it came from.

    Attributes:
        answer: the answer text; empty where `provenance` is `abstained` or `failed`.
        answer_entity: its entity, where it is one.
        ranked: distinct endpoint entities of the kept paths, best first (answer recall@K).
        answer_set: all endpoints of the best path's relation sequence (set F1).
        paths: kept paths of the deciding hop, best first.
        confidence: in [0, 1].
        candidates: the ranked start entities after validation.
        depth: D^ used by the search.
        answerability: eta of the deciding evidence; 0 without any.
    """

    answer: str
    answer_entity: int | None
    provenance: Provenance
    confidence: float = 0.0
    ranked: tuple[int, ...] = ()
    answer_set: tuple[int, ...] = ()
    paths: tuple[Path, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    depth: int = 0
    answerability: float = 0.0
    statement: str = ""
    trace: tuple[HopTrace, ...] = ()
    cost: Cost = Cost()


ReplyT = TypeVar("ReplyT", bound=BaseModel)
ChatRole = Literal["system", "user", "assistant"]
ChatOutcome = Literal["answered", "fallback", "failed"]


@dataclass(frozen=True, slots=True, eq=False)
class ChatMessage:
    """One turn of a conversation with a language model: texts and pictures in their order."""

    role: ChatRole
    parts: tuple[str | Image, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ChatRequest(Generic[ReplyT]):
    """What a prompted step asks a language model.

    Attributes:
        step: the step's name, for counts ("hop_intent").
        reply: the shape that the answer must have; its JSON schema goes along where a server takes one.
        fallback: what the step goes on with where no valid answer is had.
        query: the question that pays for the call; None where none does.
        temperature: of the sampling; 0 is greedy.
        max_tokens: of the answer.
    """

    step: str
    messages: tuple[ChatMessage, ...]
    reply: type[ReplyT]
    fallback: ReplyT
    query: Query | None = None
    temperature: float = 0.0
    max_tokens: int = 512

    @property
    def images(self) -> tuple[Image, ...]:
        """All pictures, in their order; a request without any goes to the text model."""
        return tuple(part for one in self.messages for part in one.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True)
class ChatReply(Generic[ReplyT]):
    """What came of one request.

    Attributes:
        value: the parsed answer, or the request's fallback.
        outcome: `answered`; `fallback` where the model's answers were not valid, also after it was told why;
            `failed` where a budget or the back end gave out, and nothing further is asked for this question.
        calls: answers of a model that were used, a second try after an invalid one included; those that the
            cache had count too.
        tokens: of those calls, prompt and answer.
        from_cache: whether all of them came from the cache.
        reason: why it is no answer; empty for `answered`.
    """

    value: ReplyT
    outcome: ChatOutcome = "answered"
    calls: int = 1
    tokens: int = 0
    from_cache: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What the chat back end did for one question. `failed` says why it gave out; empty where it did not."""

    cost: Cost = Cost()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """What a model wrote, with the tokens that it says it took."""

    text: str
    prompt_tokens: int
    answer_tokens: int
