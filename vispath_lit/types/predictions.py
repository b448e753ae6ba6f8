"""What comes of a question: evidence, the one answer, the trace of its hops and its cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vispath_lit.types.paths import Path
from vispath_lit.types.questions import Candidate

Provenance = Literal["stopped", "fallback", "terminal", "image_only", "abstained", "failed"]


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
    that had to be sent again counts once. `text_tokens` are all that the models count, pictures included.
    Forwards are those in which a vision-language backbone read the question, without writing anything.
    Seconds are a batch's wall time divided by its questions.
    """

    llm_calls: int = 0
    vlm_calls: int = 0
    vlm_forwards: int = 0
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
