"""Eq. 4 without a VLM: the intent of every hop is the question itself (the paper's "w/o visual intent")."""

from __future__ import annotations

from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Intents, States


class QuestionIntent:
    """The fixed `IntentModel`: q = SBERT(Q) at every hop, so that Eq. 8's text is Q ‖ S_Q."""

    def __init__(self, text_encoder: TextEncoder) -> None:
        self.text_encoder = text_encoder

    def __call__(self, states: States) -> Intents:
        question = self.text_encoder.encode([query.text for query in states.queries])
        rows = states.paths.state.to(question.device)
        return Intents(question[rows], question, [""] * len(states))
