"""Candidates for the start entity, filtered and ranked by a language model."""

from __future__ import annotations

from pydantic import BaseModel, Field

from vispath_lit.chat.prompt import Prompt


class Ranking(BaseModel):
    """Numbers of candidates, the most likely first."""

    ranking: list[int] = Field(max_length=100)


PROMPT = Prompt(
    step="ranking",
    instructions="""
A picture was recognised as `recognised`. The entities of a knowledge graph with similar names are
`candidates`, each with its number and name.

Which of them can be the thing that `expression` stands for in `question`? `ranking` lists the numbers of
those that can, the most likely first. What counts is that the name means the same thing as `recognised`, be
it under another name or spelling, and that it can be of the kind that the expression speaks of. Leave out
the others. An empty list is right where none fits.
""",
    reply=Ranking,
    max_tokens=256,
)
