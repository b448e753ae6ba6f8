"""Terminal verification: candidate answers against their reference pictures."""

from __future__ import annotations

from pydantic import BaseModel, Field

from vispath_lit.chat.prompt import Prompt


class Verified(BaseModel):
    """The number of the most plausible candidate; 0 where none is."""

    choice: int = Field(ge=0, le=100)


PROMPT = Prompt(
    step="verification",
    instructions="""
A search for the answer to `question` about the picture named "question" has ended without certain evidence.
`candidates` are entities that it came upon, the likeliest first, each with its number and name; of some of
them a reference picture is shown, named "candidate" and their number.

Is one of them a plausible answer? It has to be of the kind that is asked for, and its reference picture,
where there is one, must not speak against what the question's picture and the question tell.

`choice` is the number of the most plausible one, or 0 if none is.
""",
    reply=Verified,
    max_tokens=32,
)
