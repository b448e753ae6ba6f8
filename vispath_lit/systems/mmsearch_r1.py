"""A search agent in the manner of MMSearch-R1 (ACL 2026), over the graph's own tools.

A conversation of at most `turns` turns. In each the model
1. reasons, then does exactly one of three things, each under its own tag (a key of the reply):
2. `image_search`, once a question: the question's picture finds the top pages, with titles and thumbnails;
3. `text_search`, with a query of its own: the pages found are summed up by the model before it reads them;
4. `answer`: the conversation ends.
5. Malformed tags (none of the three, several, a second image search, a reply that is not valid) end it
   too, and so does the last turn without an answer: it then abstains.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path as FilePath

from PIL.Image import Image
from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import at_least
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend, Grounder, TextEncoder, TextProvider
from vispath_lit.systems.conversation import Talk
from vispath_lit.systems.replies import Told
from vispath_lit.systems.search_agent import SearchAgent, facts_of, starts_of
from vispath_lit.systems.search_tools import Page
from vispath_lit.types import Candidate, Query


class Turn(BaseModel):
    """The tags of one turn; of the last three exactly one is used, the others are false or empty."""

    reason: str
    image_search: bool
    text_search: str
    answer: str


TURN = Prompt(
    step="mmsearch_turn",
    instructions="""
Answer `question` about the picture. `searched` lists what was found so far. In `reason` think about what
is known and what is missing. Then do exactly one of three things and leave the other two empty:
`image_search` true finds pages of what looks like the question's picture, and works once; `text_search`
is the query of a search among pages, the name of a thing rather than a sentence; `answer` is the answer,
a name and not a sentence. `turns_left` turns are left, the last of which must answer.
""",
    reply=Turn,
)
SUMMARY = Prompt(
    step="mmsearch_summary",
    instructions="""
Sum up what `pages`, found for `query`, tell about `question`: facts that matter, with names as they are
written there, and nothing else. `text` holds the summary.
""",
    reply=Told,
    max_tokens=384,
)
MALFORMED = Turn(reason="", image_search=False, text_search="", answer="")


class MMSearchR1(SearchAgent):
    """The `System`.

    Args:
        turns: of a conversation, at most.
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
        cache_dir: FilePath | str | None = None,
        turns: int = 3,
        pages: int = 5,
        facts: int = 8,
        batch_size: int = 32,
        name: str = "MMSearch-R1-like agent",
    ) -> None:
        super().__init__(
            graph, text_encoder, texts, chat, grounder, cache_dir, pages, facts, batch_size, name
        )
        at_least(1, "system", turns=turns)
        self.turns = turns

    def talk(self, query: Query) -> Talk:
        searched: list[object] = []
        pictures: dict[str, Image | None] = {"of the question": query.image}
        looked: list[Candidate] | None = None
        told: list[str] = []
        answer = ""
        for left in range(self.turns, 0, -1):
            data: dict[str, object] = {"question": query.text, "searched": searched, "turns_left": left}
            (turn,) = yield [TURN.request(data, MALFORMED, query, pictures)]  # 1
            tags = [turn.image_search, bool(turn.text_search.strip()), bool(turn.answer.strip())]
            if sum(tags) != 1 or (turn.image_search and looked is not None):  # 5
                break
            if turn.answer.strip():  # 4
                answer = turn.answer
                break
            if turn.image_search:  # 2
                pages = self.tools.by_picture(query.image, query.text)
                looked = starts_of(pages)
                pictures |= {f"thumbnail of page {n}": page.thumbnail for n, page in enumerate(pages, 1)}
                searched.append({"image_search": titles(pages)})
                continue
            pages = self.tools.by_words(turn.text_search)  # 3
            shown: dict[str, object] = {"question": query.text, "query": turn.text_search}
            shown["pages"] = [page.data() for page in pages]
            lines = facts_of(pages) or "nothing was found"
            (summary,) = yield [SUMMARY.request(shown, Told(text=lines), query)]
            told.append(summary.text.strip() or lines)
            searched.append({"text_search": turn.text_search, "summary": told[-1]})
        return self.predicted(
            answer,
            "stopped" if searched else "image_only",
            candidates=looked or (),
            statement="\n".join(told),
        )


def titles(pages: Sequence[Page]) -> list[object]:
    """The pages of an image search: number and title; thumbnails lie beside them."""
    return [{"page": number, "title": page.title} for number, page in enumerate(pages, 1)]
