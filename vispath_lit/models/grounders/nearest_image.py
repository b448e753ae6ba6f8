"""Recognition without a VLM (in the place of Eq. 1): the nearest reference image of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PIL.Image import Image

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.references import ReferenceImages
from vispath_lit.models.grounders.topic import granted
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Analysis, Candidate, Query


class NearestImageGrounder:
    """The entities whose pictures are nearest to the question's, by cosine in a frozen encoder's space.

    An entity scores by its nearest picture; ties go to the lower index.

    Args:
        retrieve: entities that the rough search passes on to the exact one.
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
        if not 1 <= keep <= retrieve:
            raise ConfigError(f"grounder.keep is {keep}; it must be from 1 to grounder.retrieve, {retrieve}")
        self.graph = graph
        self.image_encoder = image_encoder
        self.references = ReferenceImages(graph, image_encoder, cache_dir)
        self.retrieve = retrieve
        self.keep = keep

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        ranked = [granted(query) or [] for query in queries]
        asked = [i for i, query in enumerate(queries) if query.topic is None and query.image is not None]
        images = [image for image in (queries[i].image for i in asked) if image is not None]
        if not images or not len(self.graph.image_entity):
            return ranked
        for i, found in zip(asked, self.ranked(images), strict=True):
            ranked[i] = [Candidate(entity, score, "image") for entity, score in found[: self.keep]]
        return ranked

    def ranked(self, images: Sequence[Image]) -> list[list[tuple[int, float]]]:
        """(entity, score) of the entities nearest to each image, best first."""
        entities, scores = self.references.nearest(self.image_encoder.encode(images), self.retrieve)
        return [
            list(zip(found, near, strict=True))
            for found, near in zip(entities.tolist(), scores.tolist(), strict=True)
        ]
