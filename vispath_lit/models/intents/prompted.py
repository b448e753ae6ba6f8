"""Eq. 4 by a VLM: a short text on what the next step should look for."""

from __future__ import annotations

from vispath_lit.chat.prompts import hop_intent
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import chain_words
from vispath_lit.protocols import ChatBackend, TextEncoder
from vispath_lit.types import Intents, States

MAX_INTENT = 300  # characters


class PromptedIntent:
    """The prompted `IntentModel`: q^(i) = VLM(I, Q, P^(i-1)), one text a state for all of its paths.

    Its fallback is the question itself, as the fixed one has it.
    """

    def __init__(self, graph: KnowledgeGraph, chat: ChatBackend, text_encoder: TextEncoder) -> None:
        self.graph = graph
        self.chat = chat
        self.text_encoder = text_encoder

    def __call__(self, states: States) -> Intents:
        words = chain_words(self.graph, states.paths.records())
        mine: list[list[str]] = [[] for _ in states.queries]
        for state, text in zip(states.paths.state.tolist(), words, strict=True):
            mine[state].append(text)
        replies = self.chat.complete(
            [
                hop_intent.PROMPT.request(
                    {"question": query.text, "paths": paths},
                    hop_intent.Intent(intent=""),
                    query,
                    {"question": query.image},
                )
                for query, paths in zip(states.queries, mine, strict=True)
            ]
        )
        texts = [" ".join(reply.value.intent.split())[:MAX_INTENT] for reply in replies]
        questions = [query.text for query in states.queries]
        question = self.text_encoder.encode(questions)
        intents = self.text_encoder.encode([t or q for t, q in zip(texts, questions, strict=True)])
        return Intents(intents[states.paths.state.to(intents.device)], question, texts)
