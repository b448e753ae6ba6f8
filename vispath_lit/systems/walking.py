"""What rivals share that walk the graph from a start: where they begin, and paths joined and told apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend, Grounder, QuestionAnalyzer
from vispath_lit.systems.conversation import Conversational, Talk
from vispath_lit.types import Candidate, Path, Query


class Walking(Conversational):
    """A rival that reads no picture: its start is granted, or the grounder's first."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        chat: ChatBackend,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        batch_size: int,
        name: str,
    ) -> None:
        super().__init__(graph, chat, batch_size, name)
        self.analyzer = analyzer
        self.grounder = grounder

    def talks(self, queries: Sequence[Query]) -> list[Talk]:
        return [self.talk(query, found) for query, found in zip(queries, self._starts(queries), strict=True)]

    def _starts(self, queries: Sequence[Query]) -> list[list[Candidate]]:
        """Ranked starts of each question; a granted one is taken as it is, for its words need no reading."""
        found = [[] if q.topic is None else [Candidate(q.topic, 1.0, "topic")] for q in queries]
        rows = [i for i, query in enumerate(queries) if query.topic is None]
        asked = [queries[i] for i in rows]
        ranked = self.grounder.ground(asked, self.analyzer.analyze(asked)) if asked else []
        for i, candidates in zip(rows, ranked, strict=True):
            found[i] = candidates
        return found

    @abstractmethod
    def talk(self, query: Query, candidates: Sequence[Candidate]) -> Talk:
        """The rival's steps for one question, from its ranked starts (there may be none)."""


def joined(parts: Sequence[Path]) -> Path:
    """Paths of which each begins where the one before ends, as one."""
    entities = [*parts[0].entities, *(entity for part in parts[1:] for entity in part.entities[1:])]
    return Path(tuple(entities), tuple(relation for part in parts for relation in part.relations))


def distinct(paths: Sequence[Path]) -> list[Path]:
    """The paths without those that were there before."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Path] = {}
    for path in paths:
        found.setdefault((path.entities, path.relations), path)
    return list(found.values())
