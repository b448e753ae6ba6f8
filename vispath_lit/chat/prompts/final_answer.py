"""The final answer, made anew from (I, Q, z*)."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Answer(BaseModel):
    """The answer alone."""

    answer: str


PROMPT = Prompt(
    step="final_answer",
    instructions="""
Answer `question` about the picture from `evidence`.

`answer` is the name, number or date that is asked for, written as the evidence writes it: no sentence, no
explanation, no article in front. If the evidence speaks of several, take the one that fits the question and
the picture best.
""",
    reply=Answer,
    max_tokens=96,
)
