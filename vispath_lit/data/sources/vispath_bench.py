"""VisPath-Bench in this project's own question format, over any graph of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vispath_lit.data.questions import read_questions
from vispath_lit.data.regrounding import Mention, Raw
from vispath_lit.data.sources.grounded import GroundedSource


class VisPathBench(GroundedSource):
    """`data=vispath_bench data.graph=GRAPH data.folder=FOLDER`: a JSON Lines file a split, as docs/data.md
    says.

    Pictures are relative to their question file, or looked for in `images`. A field `topic_label` names the
    topic where the graph does not know its id; `answers` name the answer where the graph does not know its
    only id.
    """

    name = "vispath_bench"

    def read(self, file: Path, split: str) -> Iterator[Raw]:
        for one in read_questions(file):
            label = one.meta.get("topic_label")
            names = (label,) if isinstance(label, str) and label.strip() else ()
            ids = (one.topic_entity,) if one.topic_entity else ()
            answers: tuple[Mention, ...] = (Mention(one.answer_ids, one.answers),)
            if len(one.answer_ids) > 1:
                answers = tuple(Mention((id,)) for id in one.answer_ids)
            image = one.image
            if image is not None and (self.images is not None or not image.is_file()):
                name = (
                    image.relative_to(file.absolute().parent) if image.is_relative_to(file.parent) else image
                )
                image = self.picture(str(name), split) if self.images else None if split == "train" else image
            question = replace(one, image=image, topic_entity=None, answer_ids=(), split=split)
            yield Raw(
                question, Mention(ids, names) if ids or names else None, answers if one.answers or ids else ()
            )
