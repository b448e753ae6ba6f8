"""(eta_i, A_i) = VLM(I, Q, z_i): whether the evidence answers the question (Eq. 10)."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Verdict(BaseModel):
    """Whether the evidence suffices, and then the answer."""

    answerable: bool
    answer: str


PROMPT = Prompt(
    step="answerability",
    instructions="""
Decide whether `evidence`, together with the picture, is enough to answer `question`.

`answerable` is true only if the evidence names the very thing that is asked for, reached by every step that
the question asks for. It is false if a step is missing, if the evidence is about something else, or if you
would have to add knowledge of your own.

`answer` is then the name of that thing as the evidence writes it, and nothing else; where `answerable` is
false it is empty.
""",
    reply=Verdict,
    max_tokens=96,
)
