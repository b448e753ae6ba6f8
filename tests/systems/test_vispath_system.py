"""The whole fixed system on a small graph: one prediction a query, and nothing but the query decides it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL.Image import Image
from torch import Tensor

from vispath_lit.data.queries import to_query
from vispath_lit.encoders.threads import side_by_side
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.models.analyzers.fixed import PatternAnalyzer
from vispath_lit.models.chain_scorers.fixed import FixedChainScorer
from vispath_lit.models.edge_scorers.fixed import FixedEdgeScorer
from vispath_lit.models.examiners.none import NoExaminer
from vispath_lit.models.grounders.fixed import FixedGrounder
from vispath_lit.models.intents.fixed import QuestionIntent
from vispath_lit.models.judges.depth import DepthJudge
from vispath_lit.models.selectors.best_path import BestPathSelector
from vispath_lit.protocols import System, TextStage
from vispath_lit.search.settings import SearchSettings
from vispath_lit.systems.vispath import VisPath
from vispath_lit.types import Cost, Paths, Prediction, Query, Question, Rows


class WordEncoder:
    """A bag of hashed words: texts that share words are near each other."""

    dim = 2048
    fingerprint = "words"

    def encode(self, texts: Sequence[str]) -> Tensor:
        rows = torch.zeros(len(texts), self.dim)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace("?", "").split():
                row[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.dim] += 1
        return torch.nn.functional.normalize(rows, dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("the fixed parts read no tokens")


class ThumbnailEncoder:
    """A picture's own pixels, shrunk."""

    dim = 12 * 12 * 3
    fingerprint = "thumbnail"

    def encode(self, images: Sequence[Image]) -> Tensor:
        small = [np.asarray(image.convert("RGB").resize((12, 12)), dtype=np.float32) for image in images]
        rows = torch.from_numpy(np.stack(small).reshape(len(small), -1)) - 127.5
        return torch.nn.functional.normalize(rows, dim=1)


class ExactTexts:
    keep = None
    texts = None

    def __init__(self, graph: KnowledgeGraph, encoder: WordEncoder) -> None:
        self.graph = graph
        self.encoder = encoder

    @property
    def stages(self) -> tuple[TextStage, ...]:
        return (self,)

    def edge_vectors(self, relation: Tensor, tail: Tensor) -> Rows:
        texts = edge_texts(self.graph, relation, tail)
        return Rows(self.encoder.encode(texts), torch.arange(len(texts)))

    def chain_vectors(self, chains: Paths) -> Rows:
        texts = verbalize(self.graph, chains)
        return Rows(self.encoder.encode(texts), torch.arange(len(texts)))


def system(
    graph: KnowledgeGraph, batch_size: int = 3, cache: Path | None = None, threads: int | None = 1
) -> VisPath:
    encoder = WordEncoder()
    return VisPath(
        graph=graph,
        text_encoder=encoder,
        texts=ExactTexts(graph, encoder),
        analyzer=PatternAnalyzer(),
        grounder=FixedGrounder(graph, ThumbnailEncoder(), cache),
        intent=QuestionIntent(encoder),
        edge_scorer=FixedEdgeScorer(),
        chain_scorer=FixedChainScorer(),
        examiner=NoExaminer(),
        judge=DepthJudge(graph),
        selector=BestPathSelector(graph),
        search=SearchSettings(),
        batch_size=batch_size,
        threads=threads,
    )


TEXTS = (
    ("What is the capital of the country whose flag is shown?", "fr", 1),
    ("What is the currency of the country that borders the country pictured here?", "de", 2),
    ("Which river flows through the country in the picture?", "fr", 1),
    ("What is the largest city of the country that borders the country whose outline is shown?", "out", 2),
    ("On which continent is the largest city of the country shown?", "de", 2),
)


@pytest.fixture
def questions(toy_folder: Path) -> list[Question]:
    files = {"fr": "fr.png", "de": "de.png", "out": "outline.jpg"}
    return [
        Question(
            id=f"q{i}",
            text=text,
            image=toy_folder / "images" / files[key],
            answers=("Paris",),
            answer_ids=("par",),
            topic_entity="fr" if key == "out" else key,
            gold_paths=((("capital", "par"),),),
            hops=hops,
            split="test",
            tags=("flag",),
            meta={"note": i},
        )
        for i, (text, key, hops) in enumerate(TEXTS)
    ]


def asked(graph: KnowledgeGraph, questions: Sequence[Question]) -> list[Query]:
    return [to_query(question, graph) for question in questions]


def free_of_cost(predictions: Sequence[Prediction]) -> list[Prediction]:
    return [replace(one, cost=Cost()) for one in predictions]


def test_what_a_system_may_not_see_changes_nothing(
    toy_graph: KnowledgeGraph, questions: list[Question], tmp_path: Path
) -> None:
    order = [3, 1, 4, 0, 2]
    stripped = []
    for place, i in enumerate(order):
        image = questions[i].image
        assert image is not None
        renamed = tmp_path / f"{9 - place}{image.suffix}"
        shutil.copy(image, renamed)
        stripped.append(Question(id=f"x{place}", text=questions[i].text, image=renamed))
    plain = free_of_cost(system(toy_graph).answer(asked(toy_graph, questions)))
    bare = free_of_cost(system(toy_graph).answer(asked(toy_graph, stripped)))
    assert bare == [plain[i] for i in order]
    assert len({one.answer for one in plain}) > 2


def test_a_query_holds_words_and_pixels_only(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    query = to_query(questions[0], toy_graph)
    assert (query.text, query.topic, query.depth) == (questions[0].text, None, None)
    assert query.image is not None
    assert query.image.info == {}
    assert not getattr(query.image, "filename", "")
    assert {name for name in Query.__slots__ if name != "__weakref__"} == {"text", "image", "topic", "depth"}


def test_a_protocol_grants_start_and_depth(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    query = to_query(questions[1], toy_graph, grant_start=True, grant_depth=True)
    assert (query.topic, query.depth) == (toy_graph.entity_index("de"), 2)
    (found,) = system(toy_graph).answer([replace(query, depth=3)])
    assert [(c.entity, c.origin) for c in found.candidates] == [(query.topic, "topic")]
    assert found.depth == len(found.paths[0].relations) == 3
    with pytest.raises(DataError, match="q7: no topic_entity"):
        to_query(Question("q7", "?"), toy_graph, grant_start=True)
    with pytest.raises(DataError, match="q7: no hops"):
        to_query(Question("q7", "?"), toy_graph, grant_depth=True)


def test_one_prediction_a_query_in_order_whatever_the_batch(
    toy_graph: KnowledgeGraph, questions: list[Question]
) -> None:
    queries = asked(toy_graph, questions)
    small, large = system(toy_graph, batch_size=1), system(toy_graph, batch_size=64)
    found = small.answer(queries)
    assert isinstance(small, System)
    assert free_of_cost(found) == free_of_cost(large.answer(queries))
    assert all(one.cost.seconds > 0 for one in found)
    assert small.answer([]) == []
    with pytest.raises(ConfigError, match="batch_size"):
        system(toy_graph, batch_size=0)


def test_threads_change_nothing_but_the_time(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    queries = asked(toy_graph, questions)
    found = system(toy_graph, threads=3).answer(queries)
    assert free_of_cost(found) == free_of_cost(system(toy_graph, batch_size=64).answer(queries))
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        list(side_by_side(lambda n: 1 // n, [2, 1, 0, 1], 3))
    assert list(side_by_side(lambda _: torch.get_num_threads(), range(4), 3)) == [1] * 4
    assert torch.get_num_threads() == before
    with pytest.raises(ConfigError, match="threads"):
        system(toy_graph, threads=0)


def test_the_answer_lies_at_the_end_of_its_path(toy_graph: KnowledgeGraph, questions: list[Question]) -> None:
    (found, *_) = system(toy_graph).answer(asked(toy_graph, questions[:1]))
    assert found.answer == "Paris"
    assert found.answer_entity == found.paths[0].end == found.ranked[0]
    assert found.provenance == "stopped"
    assert found.answer_entity in found.answer_set
    assert found.candidates[0].entity == toy_graph.entity_index("fr")
    assert 0 < found.confidence <= 1
    assert found.statement.startswith("France capital Paris")


def test_reference_features_are_kept_and_mended(toy_graph: KnowledgeGraph, tmp_path: Path) -> None:
    query = Query("the country shown?", load(toy_graph.image_files[0]))
    first = system(toy_graph, cache=tmp_path).answer([query])
    (kept,) = (tmp_path / "references").iterdir()
    stamp = kept.stat().st_mtime_ns
    assert free_of_cost(system(toy_graph, cache=tmp_path).answer([query])) == free_of_cost(first)
    assert kept.stat().st_mtime_ns == stamp
    kept.write_bytes(kept.read_bytes()[:100])
    assert free_of_cost(system(toy_graph, cache=tmp_path).answer([query])) == free_of_cost(first)
    assert kept.stat().st_size > 100


def load(path: str) -> Image:
    from vispath_lit.kg.images import load_image

    return load_image(path)
