"""The zero-shot VLM: picture and question in, answer out. It sees no graph."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.chat.prompt import Prompt
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend
from vispath_lit.systems.conversation import Conversational, Talk
from vispath_lit.systems.replies import Said
from vispath_lit.types import Query

PROMPT = Prompt(
    step="zero_shot_answer",
    instructions="""
Answer `question`; where there is a picture, it is about that. Think about each step that leads to the answer.
`answer` is then the answer alone, as short as possible: a name, not a sentence.
""",
    reply=Said,
    max_tokens=96,
)


class ZeroShot(Conversational):
    """The `System`. A granted start is not used: what the model knows is all it has.

    Without a valid reply it abstains.
    """

    def __init__(
        self, graph: KnowledgeGraph, chat: ChatBackend, batch_size: int = 32, name: str = "zero-shot VLM"
    ) -> None:
        super().__init__(graph, chat, batch_size, name)

    def talks(self, queries: Sequence[Query]) -> list[Talk]:
        return [self._talk(query) for query in queries]

    def _talk(self, query: Query) -> Talk:
        request = PROMPT.request(
            {"question": query.text}, Said(answer=""), query, {"of the question": query.image}
        )
        (said,) = yield [request]
        return self.predicted(said.answer, "image_only")
