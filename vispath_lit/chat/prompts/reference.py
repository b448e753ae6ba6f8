"""What a question's words say of its picture (before Eq. 1)."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Reference(BaseModel):
    """The words that refer to the picture, and their bare head noun."""

    expression: str
    head: str


PROMPT = Prompt(
    step="reference",
    instructions="""
You read a question that is asked about a picture. The picture itself is not shown to you.

Find the words of `question` that stand for the one thing that the picture shows, from which the rest of the
question starts. Copy them as `expression`, with everything that only describes how the picture shows it
("the country whose flag is shown"), and without what is asked about it.

`head` is the bare noun of that expression, in the singular, without article, adjectives or clauses
("country"). Where the picture shows something that belongs to the thing (a flag, an outline, a logo, a
portrait), `head` is still the thing that the expression is about.

Where no words refer to a picture, and the question names its start instead, `expression` is that name and
`head` is what kind of thing it is.
""",
    reply=Reference,
    max_tokens=128,
)
