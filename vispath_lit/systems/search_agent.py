"""What search agents share: tools over the graph, and what their pages become."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend, Grounder, TextEncoder, TextProvider
from vispath_lit.systems.conversation import Conversational, Talk
from vispath_lit.systems.search_tools import Page, SearchTools
from vispath_lit.types import Candidate, Query


class SearchAgent(Conversational):
    """A rival that searches pages in place of walking the graph.

    Args:
        pages: of one search, at most.
        facts: of one page, at most.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        texts: TextProvider,
        chat: ChatBackend,
        grounder: Grounder,
        cache_dir: FilePath | str | None,
        pages: int,
        facts: int,
        batch_size: int,
        name: str,
    ) -> None:
        super().__init__(graph, chat, batch_size, name)
        self.tools = SearchTools(graph, text_encoder, texts, grounder, cache_dir, pages, facts)

    def talks(self, queries: Sequence[Query]) -> list[Talk]:
        return [self.talk(query) for query in queries]

    @abstractmethod
    def talk(self, query: Query) -> Talk:
        """The agent's steps for one question."""


def starts_of(pages: Sequence[Page]) -> list[Candidate]:
    """The entities of a search by picture as ranked starts, each with 1 / rank as its score."""
    return [Candidate(page.entity, 1 / rank, "image") for rank, page in enumerate(pages, 1)]


def facts_of(pages: Iterable[Page]) -> str:
    """The facts of all pages in one line."""
    return "; ".join(fact for page in pages for fact in page.facts)
