"""The fixed grounder: the granted topic, else the image, else the names in the question."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.analyzers.vocabulary import PICTURE
from vispath_lit.models.grounders.name import NameGrounder
from vispath_lit.models.grounders.nearest_image import NearestImageGrounder
from vispath_lit.protocols import Grounder, ImageEncoder
from vispath_lit.types import Analysis, Candidate, Query


class ImageOrName:
    """Asks one grounder for questions about their image and another one for the rest.

    A question is about its image if it has one and either its words refer to it or they name no entity.

    Args:
        image: the grounder of questions about their image.
        name: the grounder of questions that name their start.
    """

    def __init__(self, image: Grounder, name: Grounder) -> None:
        self.image = image
        self.name = name

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        refers = [
            query.image is not None and (analysis.expression != "" or speaks_of_picture(query.text))
            for query, analysis in zip(queries, analyses, strict=True)
        ]
        by_name = [i for i, about in enumerate(refers) if not about]
        ranked: list[list[Candidate]] = [[] for _ in queries]
        for i, found in zip(by_name, _ask(self.name, by_name, queries, analyses), strict=True):
            ranked[i] = found
        # A topic was granted to, or names were found for, whatever is ranked by now.
        by_image = [i for i in range(len(queries)) if not ranked[i]]
        for i, found in zip(by_image, _ask(self.image, by_image, queries, analyses), strict=True):
            ranked[i] = found
        return ranked


class FixedGrounder(ImageOrName):
    """`ImageOrName` of the nearest reference image and the names that stand in the question.

    Args:
        retrieve: entities that the rough search by image passes on to the exact one.
        keep: candidates a question, K.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None = None,
        retrieve: int = 20,
        keep: int = 5,
    ) -> None:
        super().__init__(
            NearestImageGrounder(graph, image_encoder, cache_dir, retrieve, keep), NameGrounder(graph, keep)
        )


def speaks_of_picture(text: str) -> bool:
    """Whether a question uses a word for a picture or for what points inside one."""
    return re.search(rf"\b(?:{PICTURE})s?\b", text.lower()) is not None


def _ask(
    grounder: Grounder, rows: Sequence[int], queries: Sequence[Query], analyses: Sequence[Analysis]
) -> list[list[Candidate]]:
    return grounder.ground([queries[i] for i in rows], [analyses[i] for i in rows])
