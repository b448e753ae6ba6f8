"""A planning search agent in the manner of OmniSearch (Li et al., ICLR 2025), over the graph's own tools.

For each question, at most `rounds` times:
1. The model sees question, picture and what was found so far; it writes the next sub-question.
2. It names one action: search by the question's picture, search pictures by words, search by words, or
   answer.
3. The tool's pages join what was found, with the sub-question; it plans anew.
4. Once it has enough, or after the last round, it answers from what was found.

A reply that is not valid ends the planning: the answer is then asked for at once, and abstention is the
fallback of that. Each question has its own rounds; the published code's quota of searches is never reset
between questions.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Literal

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import at_least
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend, Grounder, TextEncoder, TextProvider
from vispath_lit.systems.conversation import Talk
from vispath_lit.systems.replies import Said
from vispath_lit.systems.search_agent import SearchAgent, facts_of, starts_of
from vispath_lit.systems.search_tools import Page
from vispath_lit.types import Candidate, Provenance, Query


class Action(BaseModel):
    """One step of the plan."""

    thought: str
    sub_question: str
    action: Literal["search_by_picture", "search_pictures", "search_words", "answer"]
    words: str


PLAN = Prompt(
    step="omnisearch_plan",
    instructions="""
You answer `question` about the picture by searching a collection of pages, one search at a time. `found`
lists earlier sub-questions with their pages; `rounds_left` searches are left.

`thought` weighs what is known and what is missing. `sub_question` is the next thing to find out. `action`
is one of: search_by_picture (pages of what looks like the question's picture), search_pictures (pages
with pictures of what `words` name), search_words (pages about what `words` name), answer (enough is
known). `words` is what is searched for: the name of a thing, not a sentence; empty where the action needs
none.
""",
    reply=Action,
)
ANSWER = Prompt(
    step="omnisearch_answer",
    instructions="""
Answer `question` about the picture from `found`, pages that were searched for it, and what you know.
`answer` is a name, not a sentence.
""",
    reply=Said,
    max_tokens=96,
)
ENOUGH = Action(thought="", sub_question="", action="answer", words="")


class OmniSearch(SearchAgent):
    """The `System`.

    Args:
        rounds: of planning and searching, at most.
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
        rounds: int = 5,
        pages: int = 5,
        facts: int = 8,
        batch_size: int = 32,
        name: str = "OmniSearch-like agent",
    ) -> None:
        super().__init__(
            graph, text_encoder, texts, chat, grounder, cache_dir, pages, facts, batch_size, name
        )
        at_least(1, "system", rounds=rounds)
        self.rounds = rounds

    def talk(self, query: Query) -> Talk:
        found: list[object] = []
        seen: dict[int, Page] = {}
        looked: list[Candidate] = []
        picture = {"of the question": query.image}
        for left in range(self.rounds, 0, -1):
            data: dict[str, object] = {"question": query.text, "found": found, "rounds_left": left}
            (plan,) = yield [PLAN.request(data, ENOUGH, query, picture)]  # 1 and 2
            if plan.action == "answer":
                break
            pages = self._searched(query, plan)  # 3
            if plan.action == "search_by_picture" and not looked:
                looked = starts_of(pages)
            seen |= {page.entity: page for page in pages}
            asked = {"sub_question": plan.sub_question, "action": plan.action, "words": plan.words}
            found.append({**asked, "pages": [page.data() for page in pages]})
        data = {"question": query.text, "found": found}
        (said,) = yield [ANSWER.request(data, Said(answer=""), query, picture)]  # 4
        provenance: Provenance = "terminal" if seen else "image_only"
        return self.predicted(said.answer, provenance, candidates=looked, statement=facts_of(seen.values()))

    def _searched(self, query: Query, plan: Action) -> list[Page]:
        if plan.action == "search_by_picture":
            return self.tools.by_picture(query.image, plan.sub_question or query.text)
        if plan.action == "search_pictures":
            return self.tools.pictures_of(plan.words or plan.sub_question)
        return self.tools.by_words(plan.words or plan.sub_question)
