"""q^(i) = VLM(I, Q, P^(i-1)): what the next step should look for (Eq. 4)."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Intent(BaseModel):
    """A short text about the next step."""

    intent: str


PROMPT = Prompt(
    step="hop_intent",
    instructions="""
You steer a walk through a knowledge graph that is to answer `question` about the picture. `paths` are the
walks so far, the best first; each begins at the entity that the picture shows and lists the relations and
entities passed.

Say what the next step should look for: the relation to follow from where the paths end and, if the question
or the picture tells it, the entity or kind of entity to reach. Look at the picture again: a detail in it (a
logo, a colour, a mark, writing) may say which of several relations or entities is meant.

`intent` is a phrase of at most fifteen words, such as "club shown on the jersey" or "league of the club".
It speaks of the next step only, not of the whole question.
""",
    reply=Intent,
    max_tokens=96,
)
