"""VisPath-Bench in this project's own question format, over any graph of the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from vispath_lit.data.questions import read_questions
from vispath_lit.data.regrounding import Mention, Raw
from vispath_lit.data.sources.grounded import GroundedSource
from vispath_lit.kg.images import is_there


class VisPathBench(GroundedSource):
    """`data=vispath_bench data.graph=GRAPH data.folder=FOLDER`: a JSON Lines file a split.

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
            answers: tuple[Mention, ...] = ()
            if len(one.answer_ids) > 1:
                answers = tuple(Mention((id,)) for id in one.answer_ids)
            elif one.answer_ids or one.answers:
                answers = (Mention(one.answer_ids, one.answers),)
            image = self._image(one.image, file, split)
            question = replace(one, image=image, topic_entity=None, answer_ids=(), split=split)
            yield Raw(question, Mention(ids, names) if ids or names else None, answers)

    def _image(self, image: Path | None, file: Path, split: str) -> Path | None:
        """The picture beside the question file; in `images` where that is given."""
        if image is None:
            return None
        if self.images is not None:
            folder = file.absolute().parent
            return self.picture(
                str(image.relative_to(folder) if image.is_relative_to(folder) else image), split
            )
        return None if split == "train" and not is_there(image) else image
