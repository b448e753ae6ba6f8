"""The examination of whole chains, by the schemas of their relations."""

from __future__ import annotations

from pydantic import BaseModel, Field

from vispath_lit.chat.prompt import Prompt


class Chosen(BaseModel):
    """Numbers of the schemas to keep."""

    keep: list[int] = Field(max_length=100)


PROMPT = Prompt(
    step="chain_judging",
    instructions="""
Walks through a knowledge graph, found for `question`, are grouped by the relations that they follow. Each
of `schemas` has a number, its chain of relations from the start, how many walks follow it, and some
entities where they end.

Which schemas are sound chains of reasoning for the question, taken as wholes? A chain that is right so far
and still has steps to go counts as sound. One that took a turn which the question does not speak of does
not, even if its last relation sounds right.

`keep` lists the numbers of the sound ones, the best first; an empty list where none is.
""",
    reply=Chosen,
    max_tokens=256,
)
