"""The answer from the picture alone, where the graph has none."""

from __future__ import annotations

from vispath_lit.chat.prompt import Prompt
from vispath_lit.chat.prompts.final_answer import Answer

PROMPT = Prompt(
    step="image_answer",
    instructions="""
Answer `question` from the picture and what you know. No other evidence was found.

`answer` is the name, number or date that is asked for: no sentence, no explanation, no article in front. If
you are not sure, give the most likely one.
""",
    reply=Answer,
    max_tokens=96,
)
