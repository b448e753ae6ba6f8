"""o = VLM(I, HEAD): what the picture shows (Eq. 1). It sees the head noun alone, not the question."""

from __future__ import annotations

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt


class Recognised(BaseModel):
    """The name of what is shown."""

    name: str


PROMPT = Prompt(
    step="recognition",
    instructions="""
You are shown a picture. Say which `head` it shows: the particular one, by the name under which an
encyclopedia has it ("Norway", not "a country"; "Eiffel Tower", not "a tower").

Use everything in the picture: shape, colours, symbols, writing, marks such as an arrow or a dot. Where the
picture shows a flag, an outline, a logo or a portrait, name the `head` that it belongs to.

If you are not sure, give the most likely name. `name` is the name alone.
""",
    reply=Recognised,
    max_tokens=64,
)
