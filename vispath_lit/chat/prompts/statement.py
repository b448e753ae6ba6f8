"""z_i = VLM(I, Q, P^(i)): the image-grounded evidence statement (Eq. 9)."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Statement(BaseModel):
    """What the paths say, in the light of the picture."""

    statement: str


PROMPT = Prompt(
    step="statement",
    instructions="""
`paths` are walks through a knowledge graph, the best first, found for `question` about the picture.

Write down what they establish: which entity the picture shows, and what follows from it, step by step, by
the names of the paths. Where paths disagree, say which fits the picture and the question better, and why.
Use only what the paths say and what can be seen; add nothing that you merely know. Do not say whether the
question is answered.

`statement` has at most four sentences.
""",
    reply=Statement,
    max_tokens=320,
)
