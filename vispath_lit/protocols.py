"""The seams: one Protocol for each step of Algorithm 1, so that a new part is one file and one config.

All are batched over questions. S states, P partial paths, E candidate edges, C chains, d text dimensions
(see `vispath_lit.types` for the batches). Scores are unbounded logits, higher is better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Protocol, runtime_checkable

from PIL.Image import Image
from torch import Tensor, nn

from vispath_lit.types import (
    Analysis,
    Bill,
    Candidate,
    ChatReply,
    ChatRequest,
    Evidence,
    Frontier,
    Intents,
    Path,
    Paths,
    Prediction,
    Provenance,
    Query,
    Question,
    RawAnswer,
    ReplyT,
    Rows,
    States,
)


class TextEncoder(Protocol):
    """Sentences to unit vectors; each distinct text is embedded once and cached by content."""

    @property
    def dim(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def encode(self, texts: Sequence[str]) -> Tensor:
        """`[n, d]` float32 with unit rows."""
        ...

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Last hidden states `[n, L, d]` and their mask `[n, L]` (True is a token), padded on the right."""
        ...


class ImageEncoder(Protocol):
    """Pictures to unit vectors, cached by their pixels."""

    @property
    def dim(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    def encode(self, images: Sequence[Image]) -> Tensor:
        """`[n, d]` float32 with unit rows."""
        ...


class QuestionAnalyzer(Protocol):
    """Referring expression, head noun, sketch S_Q and depth D^ of each question."""

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]: ...


class Grounder(Protocol):
    """Start entities, best first, at most K a question; a granted topic comes alone."""

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]: ...


class TextStage(Protocol):
    """One way to embed edge texts "r ‖ e_t" and chain texts Verbalize(p)."""

    @property
    def keep(self) -> int | None:
        """Times the beam width that this stage passes on to the next; None for the last stage."""
        ...

    @property
    def texts(self) -> int | None:
        """Texts a question that the next stage may embed in all its hops; None for no bound."""
        ...

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        """A vector for each of `[E]` (signed relation, tail) pairs; equal pairs share a row."""
        ...

    def chain_vectors(self, chains: Paths) -> Rows:
        """A vector for each of the C chains."""
        ...


class TextProvider(Protocol):
    """Exact and composed texts have one stage; two-stage ranks by the first and decides by the second."""

    @property
    def stages(self) -> tuple[TextStage, ...]: ...


class Backbone(Protocol):
    """What reads picture, question and walked paths together, for the intent of a hop (h of Eq. 4)."""

    @property
    def dim(self) -> int:
        """Width of the hidden states; 0 where there is no backbone."""
        ...

    def __call__(self, queries: Sequence[Query], statements: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Last hidden states `[S, L, dim]` float32 and their mask `[S, L]` (True is something).

        One query and one statement a state: the kept partial paths in words, best first, "" before any step.
        """
        ...


class IntentModel(Protocol):
    """Eq. 4."""

    def __call__(self, states: States) -> Intents: ...


class NeighbourhoodEncoder(Protocol):
    """g(e): the surroundings of entity e in the graph as k numbers; k is 0 where there is no encoder."""

    @property
    def dim(self) -> int: ...
    def rows(self, entities: Tensor) -> Rows:
        """The vectors `[n, k]` of `[n]` entities, from a table and without a gradient; not of unit length."""
        ...

    def encode(self, entities: Tensor) -> Tensor:
        """The same `[n, k]` computed anew, with a gradient to the encoder's weights."""
        ...

    def refresh(self, step: int) -> None:
        """Before each training step of an epoch, from 0: rows that are too old for it are forgotten."""
        ...


class EdgeScorer(Protocol):
    """Eq. 5."""

    def __call__(self, frontier: Frontier, texts: Rows, intents: Intents) -> Tensor:
        """Logits `[E]`."""
        ...


class ChainScorer(Protocol):
    """Eq. 8."""

    def __call__(self, chains: Paths, texts: Rows, objective: Tensor, intents: Intents) -> Tensor:
        """Logits `[C]`. `objective` is `[S, d]`: SBERT(Q ‖ S_Q ‖ intent text) of each state.

        `intents.vectors` is indexed by the chain's parent path: it holds one row a chain here, `[C, d]`.
        """
        ...


class ChainExaminer(Protocol):
    """Looks at the M2 best chains of each question as wholes; an empty pick means "no opinion"."""

    def examine(self, queries: Sequence[Query], chains: Sequence[Sequence[Path]]) -> list[list[int]]:
        """For each question the positions of the chains to keep."""
        ...


class EvidenceJudge(Protocol):
    """Eq. 9-10: statement, answerability in [0, 1] and candidate answer from the kept paths."""

    def judge(
        self,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        kept: Sequence[Sequence[Path]],
        hop: int,
    ) -> list[Evidence]: ...


class AnswerSelector(Protocol):
    """The final answer from the deciding evidence, else from the paths, else from the image."""

    def select(
        self,
        queries: Sequence[Query],
        evidence: Sequence[Evidence | None],
        visited: Sequence[Sequence[Path]],
    ) -> list[tuple[str, int | None, Provenance]]:
        """For each question (answer, entity, provenance).

        `evidence` is None where no hop was answerable; `visited` then holds every kept path.
        """
        ...

    def confidence(self, prediction: Prediction) -> float:
        """How sure the answer is, in [0, 1]: calibrated where the selector has been fitted."""
        ...


class ChatBackend(Protocol):
    """Language models for prompted parts and rivals: whatever is asked is answered, or its fallback is."""

    @property
    def fingerprint(self) -> str:
        """What of the back end changes an answer: model, server, sampling; no secret."""
        ...

    def complete(self, requests: Sequence[ChatRequest[ReplyT]]) -> list[ChatReply[ReplyT]]:
        """One reply a request, in order. Requests of a batch are sent side by side, retried and cached."""
        ...

    def settle(self, queries: Sequence[Query]) -> list[Bill]:
        """What each query has cost since it was settled last, and whether the back end gave out on it."""
        ...

    def usage(self) -> Mapping[str, int]:
        """Totals of this process: `requests` sent (retries included), `cache_hits`, tokens, and by step.

        `earlier_requests` are those that earlier sessions of the same run have sent.
        """
        ...


class Sending(Protocol):
    """Counts what goes out for one request."""

    def __call__(self) -> None:
        """Before every attempt.

        Raises:
            ChatError: a budget is used up; nothing may go out.
        """
        ...

    def undo(self) -> None:
        """The attempt that was counted last never left: there was no connection."""
        ...


class ChatModel(Protocol):
    """One language model, text or image-text; cache, budgets and parsing lie around it."""

    @property
    def fingerprint(self) -> str: ...
    def ask(self, request: ChatRequest[ReplyT], send: Sending) -> RawAnswer:
        """The answer to one request, each attempt at it announced with `send`.

        Raises:
            ChatError: no answer is to be had.
        """
        ...


@runtime_checkable
class System(Protocol):
    """What answers questions: VisPath or a rival."""

    @property
    def name(self) -> str: ...
    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        """Exactly one prediction a query, in order."""
        ...


@runtime_checkable
class Trainable(Protocol):
    """A `System` with weights of its own: `train.py` fits them, and a checkpoint holds them."""

    @property
    def weights(self) -> nn.Module: ...
    def fit(self, questions: Sequence[Question], val: Sequence[Question], seed: int) -> None:
        """Trains `weights` in place; val questions may choose among epochs and settle nothing else.

        Raises:
            DataError: no question that can be learned from.
        """
        ...


class QuestionSource(Protocol):
    """One data set: a built graph store and its questions by split."""

    @property
    def name(self) -> str: ...
    def prepare(self) -> FilePath:
        """Builds what is missing, with progress, and returns the graph store's folder."""
        ...

    def questions(self, split: str) -> list[Question]:
        """The questions of a split in their stored order; empty where the source has no such split.

        Raises:
            DataError: a file that is missing or malformed.
        """
        ...
