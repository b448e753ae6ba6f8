from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL.Image import Image
from torch import Tensor

from vispath_lit.errors import ConfigError
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.fixed import FixedGrounder, ImageOrName
from vispath_lit.models.grounders.name import NameGrounder, written_as_name
from vispath_lit.models.grounders.nearest_image import NearestImageGrounder
from vispath_lit.models.grounders.references import ReferenceImages
from vispath_lit.models.grounders.topic import TopicGrounder
from vispath_lit.protocols import Grounder
from vispath_lit.types import Analysis, Candidate, Query

NOTHING = Analysis("", "", "", (1.0,))
PICTURED = Analysis("the country shown", "country", "", (1.0,))


class ThumbnailEncoder:
    """A picture's own pixels, shrunk; counts what it is asked."""

    dim = 8 * 8 * 3
    fingerprint = "thumbnail"

    def __init__(self) -> None:
        self.asked = 0

    def encode(self, images: Sequence[Image]) -> Tensor:
        self.asked += len(images)
        small = [np.asarray(image.convert("RGB").resize((8, 8)), dtype=np.float32) for image in images]
        rows = torch.from_numpy(np.stack(small).reshape(len(small), -1)) - 127.5
        return torch.nn.functional.normalize(rows, dim=1)


def entities(candidates: list[Candidate]) -> list[int]:
    return [candidate.entity for candidate in candidates]


def test_the_nearest_picture_of_each_entity_ranks_it(toy_graph: KnowledgeGraph) -> None:
    encoder = ThumbnailEncoder()
    grounder = NearestImageGrounder(toy_graph, encoder)
    images = [load_image(file) for file in toy_graph.image_files]
    found = grounder.ground([Query("q", image) for image in images], [PICTURED] * len(images))
    references = encoder.encode(images)
    for row, candidates in enumerate(found):
        best: dict[int, float] = {}
        for other, entity in enumerate(toy_graph.image_entity.tolist()):
            cosine = float(references[row] @ references[other])
            best[entity] = max(best.get(entity, -1.0), cosine)
        assert entities(candidates) == sorted(best, key=lambda entity: -best[entity])
        assert [c.score for c in candidates] == pytest.approx(
            [best[e] for e in entities(candidates)], abs=1e-3
        )
        assert candidates[0].entity == toy_graph.image_entity[row]
        assert {c.origin for c in candidates} == {"image"}


def test_a_score_does_not_depend_on_the_batch(toy_graph: KnowledgeGraph) -> None:
    grounder = NearestImageGrounder(toy_graph, ThumbnailEncoder())
    queries = [Query("q", load_image(file)) for file in toy_graph.image_files]
    together = grounder.ground(queries, [PICTURED] * len(queries))
    assert together == [grounder.ground([query], [PICTURED])[0] for query in queries]


def test_at_most_k_candidates_are_kept(toy_graph: KnowledgeGraph) -> None:
    image = load_image(toy_graph.image_files[0])
    (found,) = NearestImageGrounder(toy_graph, ThumbnailEncoder(), keep=1).ground(
        [Query("q", image)], [PICTURED]
    )
    assert len(found) == 1
    with pytest.raises(ConfigError, match=r"grounder\.keep"):
        NearestImageGrounder(toy_graph, ThumbnailEncoder(), keep=0)
    with pytest.raises(ConfigError, match=r"grounder\.keep"):
        NearestImageGrounder(toy_graph, ThumbnailEncoder(), retrieve=3, keep=4)


def test_reference_features_are_computed_once_a_graph_and_encoder(
    toy_graph: KnowledgeGraph, tmp_path: Path
) -> None:
    encoder = ThumbnailEncoder()
    first = np.array(ReferenceImages(toy_graph, encoder, tmp_path).vectors)
    assert encoder.asked == len(toy_graph.image_files)
    assert np.array_equal(ReferenceImages(toy_graph, encoder, tmp_path).vectors, first)
    assert encoder.asked == len(toy_graph.image_files)


def test_an_unreadable_picture_is_told_and_matches_nothing(
    toy_graph: KnowledgeGraph, caplog: pytest.LogCaptureFixture
) -> None:
    Path(toy_graph.image_files[0]).write_bytes(b"not a picture")
    references = ReferenceImages(toy_graph, ThumbnailEncoder(), None)
    with caplog.at_level(logging.WARNING):
        vectors = references.vectors
    assert toy_graph.image_files[0] in caplog.text
    assert not vectors[0].any()
    assert all(row.any() for row in vectors[1:])


@pytest.mark.parametrize("grounder", ["topic", "image", "name", "fixed"])
def test_a_granted_topic_comes_alone(grounder: str, toy_graph: KnowledgeGraph) -> None:
    encoder = ThumbnailEncoder()
    grounders: dict[str, Grounder] = {
        "topic": TopicGrounder(),
        "image": NearestImageGrounder(toy_graph, encoder),
        "name": NameGrounder(toy_graph),
        "fixed": FixedGrounder(toy_graph, encoder),
    }
    image = load_image(toy_graph.image_files[0])
    found = grounders[grounder].ground(
        [Query("the capital of Germany", image, topic=7)] * 2, [PICTURED, NOTHING]
    )
    assert found == [[Candidate(7, 1.0, "topic")]] * 2
    assert encoder.asked == 0


def test_names_are_ranked_by_their_length_in_the_question(toy_graph: KnowledgeGraph) -> None:
    text = "Does the Rhine flow through Switzerland or Paris?"
    (found,) = NameGrounder(toy_graph).ground([Query(text)], [NOTHING])
    assert [toy_graph.entity_id(entity) for entity in entities(found)] == ["ch", "rhi", "par", "pt"]
    assert [c.score for c in found[:2]] == pytest.approx([11 / len(text), 5 / len(text)])
    assert len(NameGrounder(toy_graph, keep=2).mentioned(text)) == 2
    assert NameGrounder(toy_graph).mentioned("Who knows?") == []


def test_the_words_decide_between_image_and_name(toy_graph: KnowledgeGraph) -> None:
    image = load_image(toy_graph.image_files[0])
    grounder = FixedGrounder(toy_graph, ThumbnailEncoder())
    queries = [
        Query("Does the country shown border Germany?", image),
        Query("What is the capital of Germany?", image),
        Query("What is the capital of Germany?"),
        Query("What is the capital?", image),
        Query("What is the capital?"),
        Query("Look at the map. What is the capital of Germany's neighbour?", image),
        Query("Germany borders which country?", image),
        Query("which country does germany border?", image),
        Query("which country does germany border?"),
    ]
    found = grounder.ground(queries, [PICTURED, *[NOTHING] * 8])
    origins = ["image", "name", "name", "image", "", "image", "image", "image", "name"]
    assert [one[0].origin if one else "" for one in found] == origins


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        ("the capital of Germany", "Germany", True),
        ("the capital of germany", "germany", False),
        ("Country of birth", "Country", False),  # a capital that every sentence has
        ("Look. Frontier county there", "Frontier county", False),
        ("Rio Grande is where?", "Rio Grande", True),
        ("where is 日本", "日本", True),
    ],
)
def test_a_name_is_told_from_a_word(text: str, name: str, written: bool) -> None:
    assert written_as_name(text, text.index(name), text.index(name) + len(name)) == written


def test_a_question_about_a_missing_image_is_asked_by_name(toy_graph: KnowledgeGraph) -> None:
    grounder = ImageOrName(NearestImageGrounder(toy_graph, ThumbnailEncoder()), NameGrounder(toy_graph))
    (found,) = grounder.ground([Query("Does the country shown border Germany?")], [PICTURED])
    assert [toy_graph.label(entity) for entity in entities(found)] == ["Germany"]
