"""Recognition without a VLM (in the place of Eq. 1): the nearest reference image of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

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
        keep: candidates a question, K.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None = None,
        keep: int = 5,
    ) -> None:
        if keep < 1:
            raise ConfigError(f"grounder.keep is {keep}; it must be at least 1")
        self.image_encoder = image_encoder
        self.references = ReferenceImages(graph, image_encoder, cache_dir)
        self.keep = keep

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        ranked = [granted(query) or [] for query in queries]
        asked = [i for i, query in enumerate(queries) if query.topic is None and query.image is not None]
        images = [image for image in (queries[i].image for i in asked) if image is not None]
        if not images or not len(self.references.entities):
            return ranked
        scores = self.references.similarities(self.image_encoder.encode(images))
        order = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, : self.keep]
        for i, row, places in zip(asked, scores, order.tolist(), strict=True):
            found = self.references.entities[places].tolist()
            scored = zip(found, row[places].tolist(), strict=True)
            ranked[i] = [Candidate(entity, score, "image") for entity, score in scored if score > -1]
        return ranked
