"""From an answer in words to the entity that it names."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Path


class AnswerLinker:
    """Looks for an answer's name first on the paths behind it, then in the whole graph."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._names = NameIndex(graph)

    def entity(self, answer: str, paths: Sequence[Path]) -> int | None:
        """The entity of that label or alias; None where there is none, or several off the paths.

        Ends of paths come before what lies on the way, better paths before others.
        """
        if not answer.strip():
            return None
        ends = [path.end for path in paths]
        passed = [entity for path in paths for entity in reversed(path.entities[:-1])]
        for entity in dict.fromkeys([*ends, *passed]):
            if self._names.bears(entity, answer):
                return entity
        found = self._names.exact(answer)
        return found[0] if len(found) == 1 else None
