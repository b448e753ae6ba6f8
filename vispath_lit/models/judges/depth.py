"""Eq. 9-10 without a VLM: the evidence suffices once the predicted number of hops is walked."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import verbalize
from vispath_lit.types import Analysis, Evidence, Path, Query


class DepthJudge:
    """The fixed `EvidenceJudge`: eta = 1 where `hop >= D^` and a path is kept.

    The statement z is the verbalised kept paths, best first; the candidate answer is the end of the best one.
    """

    def __init__(self, graph: KnowledgeGraph) -> None:
        self.graph = graph

    def judge(
        self,
        queries: Sequence[Query],
        analyses: Sequence[Analysis],
        kept: Sequence[Sequence[Path]],
        hop: int,
    ) -> list[Evidence]:
        texts = iter(verbalize(self.graph, [path for paths in kept for path in paths]))
        answers = iter(self.graph.labels([paths[0].end for paths in kept if paths]))
        return [
            Evidence(
                statement="; ".join(next(texts) for _ in paths),
                answerability=float(bool(paths) and hop >= analysis.hops),
                answer=next(answers) if paths else None,
                answer_entity=paths[0].end if paths else None,
                paths=tuple(paths),
                hop=hop,
            )
            for analysis, paths in zip(analyses, kept, strict=True)
        ]
