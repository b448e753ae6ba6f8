"""The tools of a search agent over a multimodal graph: pages for a picture, pages for words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

import torch
from PIL import Image

from vispath_lit.errors import DataError, at_least
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.images import load_image
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import fact
from vispath_lit.protocols import Grounder, TextEncoder, TextProvider
from vispath_lit.systems.replies import plain
from vispath_lit.types import Analysis, Paths, Query

THUMBNAIL = 224  # pixels of the longer side
HUB_CAP = 50  # edges of an entity and direction that its page may tell
NO_WORDS = Analysis("the picture", "picture", "", (1.0,))


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """What a search finds about one entity.

    Attributes:
        facts: its facts that are nearest to what was searched for, each "subject, relation, object".
        thumbnail: a small copy of its reference picture, where it has one and one was asked for.
    """

    entity: int
    title: str
    kind: str
    text: str
    facts: tuple[str, ...] = ()
    thumbnail: Image.Image | None = None

    def data(self) -> dict[str, object]:
        """As a prompt shows it, without the picture."""
        return {"title": self.title, "kind": self.kind, "text": self.text, "facts": list(self.facts)}


class SearchTools:
    """Search by picture among the graph's reference images, and by words among its names and facts.

    Args:
        pages: of one search, at most.
        facts: of one page, at most.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        texts: TextProvider,
        grounder: Grounder,
        cache_dir: FilePath | str | None = None,
        pages: int = 5,
        facts: int = 8,
    ) -> None:
        at_least(1, "system", pages=pages, facts=facts)
        self.graph = graph
        self.encoder = text_encoder
        self.stage = texts.stages[-1]
        self.grounder = grounder
        self.names = NameIndex(graph, text_encoder, cache_dir)
        self.pages = pages
        self.facts = facts

    def by_picture(self, image: Image.Image | None, about: str) -> list[Page]:
        """The entities whose reference images are like the picture; none without one."""
        if image is None:
            return []
        (found,) = self.grounder.ground([Query("the picture", image)], [NO_WORDS])
        return [self._page(one.entity, about, with_image=True) for one in found[: self.pages]]

    def pictures_of(self, words: str) -> list[Page]:
        """Entities of nearly this name that have a reference image."""
        named = self._named(words, 4 * self.pages)
        return [
            self._page(entity, words, with_image=True) for entity in named if self.graph.images_of(entity)
        ][: self.pages]

    def by_words(self, words: str) -> list[Page]:
        """Entities that the words name, or nearly."""
        return [self._page(entity, words) for entity in self._named(words, self.pages)]

    def _named(self, words: str, count: int) -> list[int]:
        """Entities whose names stand in the words, the longest first; then those of the nearest names."""
        words = plain(words)
        if not words:
            return []
        mentions = sorted(self.names.find_mentions(words), key=lambda one: one.span[0] - one.span[1])
        near = self.names.search([words], count)[0]
        found = [*(mention.entities[0] for mention in mentions), *(match.entity for match in near)]
        return list(dict.fromkeys(found))[:count]

    def _page(self, entity: int, about: str, *, with_image: bool = False) -> Page:
        graph = self.graph
        return Page(
            entity,
            graph.label(entity),
            graph.type_of(entity),
            graph.description(entity),
            tuple(self._facts(entity, about)),
            self._thumbnail(entity) if with_image else None,
        )

    def _facts(self, entity: int, about: str) -> Sequence[str]:
        """The facts whose edge texts (Eq. 5) are nearest to the words; the earlier one on a tie."""
        start = Paths.starts(torch.tensor([entity]), torch.zeros(1, dtype=torch.long))
        edges = expand(self.graph, start, hub_cap=HUB_CAP)
        if not len(edges):
            return []
        rows = self.stage.edge_vectors(edges.relation, edges.tail)
        cosines = (rows.vectors @ self.encoder.encode([plain(about)])[0])[rows.index]
        best = torch.sort(cosines, descending=True, stable=True).indices[: self.facts]
        return [
            fact(self.graph, entity, relation, tail)
            for relation, tail in zip(edges.relation[best].tolist(), edges.tail[best].tolist(), strict=True)
        ]

    def _thumbnail(self, entity: int) -> Image.Image | None:
        """None where there is no picture, or none that can be read: a page does without."""
        for file, _ in self.graph.images_of(entity)[:1]:
            try:
                image = load_image(file)
            except DataError:
                return None
            image.thumbnail((THUMBNAIL, THUMBNAIL))
            return image
        return None
