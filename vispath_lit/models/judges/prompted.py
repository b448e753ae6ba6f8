"""Eq. 9-10 by a VLM: an evidence statement, then whether it answers the question."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.chat.prompts import answerability, statement
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import chain_words
from vispath_lit.models.linking import AnswerLinker
from vispath_lit.protocols import ChatBackend
from vispath_lit.types import Analysis, Evidence, Path, Query


class PromptedJudge:
    """The prompted `EvidenceJudge`: z_i = VLM(I, Q, P^(i)), then (eta_i, A_i) = VLM(I, Q, z_i).

    The statement falls back to the kept paths in words, the verdict to "not answerable".
    """

    def __init__(self, graph: KnowledgeGraph, chat: ChatBackend) -> None:
        self.graph = graph
        self.chat = chat
        self.linker = AnswerLinker(graph)

    def judge(
        self,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        kept: Sequence[Sequence[Path]],
        hop: int,
    ) -> list[Evidence]:
        words = [chain_words(self.graph, paths) for paths in kept]
        written = self.chat.complete(
            [
                statement.PROMPT.request(
                    {"question": query.text, "paths": mine},
                    statement.Statement(statement="; ".join(mine)),
                    query,
                    {"question": query.image},
                )
                for query, mine in zip(queries, words, strict=True)
            ]
        )
        statements = [
            reply.value.statement.strip() or "; ".join(mine)
            for reply, mine in zip(written, words, strict=True)
        ]
        verdicts = self.chat.complete(
            [
                answerability.PROMPT.request(
                    {"question": query.text, "evidence": text},
                    answerability.Verdict(answerable=False, answer=""),
                    query,
                    {"question": query.image},
                )
                for query, text in zip(queries, statements, strict=True)
            ]
        )
        return [
            self._evidence(text, verdict.value, paths, hop)
            for text, verdict, paths in zip(statements, verdicts, kept, strict=True)
        ]

    def _evidence(
        self, text: str, verdict: answerability.Verdict, paths: Sequence[Path], hop: int
    ) -> Evidence:
        answer = verdict.answer.strip() if verdict.answerable else ""
        return Evidence(
            statement=text,
            answerability=float(verdict.answerable),
            answer=answer or None,
            answer_entity=self.linker.entity(answer, paths),
            paths=tuple(paths),
            hop=hop,
        )
