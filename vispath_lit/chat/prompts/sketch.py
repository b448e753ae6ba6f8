"""The reasoning sketch S_Q and the depth D^ of a question."""

from __future__ import annotations

from pydantic import BaseModel, Field

from vispath_lit.chat.prompt import Prompt


class Sketch(BaseModel):
    """The relations to walk, in their order, and how many they are."""

    relations: list[str] = Field(max_length=16)
    depth: int = Field(ge=1, le=16)


PROMPT = Prompt(
    step="sketch",
    instructions="""
You plan a walk through a knowledge graph. It starts at the thing that `expression` stands for in
`question`, and ends at the answer. Each step follows one relation from one entity to another.

`relations` lists what each step should follow, from the start to the answer, each in a few words as a graph
would name it ("architect", "place of birth"). Name no entity, and do not answer the question.

`depth` is the number of steps. Count only steps that the question makes necessary: recognising the picture
is not one of them.
""",
    reply=Sketch,
    max_tokens=256,
)
