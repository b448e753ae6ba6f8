"""Answers from a checkpoint, from Python or the command line, in any folder.

from vispath_lit.launch.predictor import VisPath

vispath = VisPath.from_checkpoint("outputs/latest/checkpoints/best.ckpt")
answer = vispath.ask("What money do people use in the country whose flag is shown?", image="flag.jpg")
print(answer.text, answer.path)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from PIL.Image import Image

from vispath_lit.data.queries import to_query
from vispath_lit.errors import DataError, VisPathError
from vispath_lit.kg.cached import store_of
from vispath_lit.kg.images import load_image
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.checkpoint import (
    KEY,
    check_fit,
    decided_keys,
    read_checkpoint,
    resolve,
    trained_store,
)
from vispath_lit.launch.config import load_config, with_checkpoint
from vispath_lit.launch.parts import make_world, without_prompts
from vispath_lit.launch.system import build_system
from vispath_lit.progress import track
from vispath_lit.protocols import System
from vispath_lit.types import Path as GraphPath
from vispath_lit.types import Prediction, Query, Question

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ScoredPath:
    """A kept path in words: `steps` holds (relation label, entity label) pairs from `start`."""

    start: str
    steps: tuple[tuple[str, str], ...]
    score: float

    def __str__(self) -> str:
        return self.start + "".join(f" —{relation}→ {entity}" for relation, entity in self.steps)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answered question.

    Attributes:
        text: the answer; empty where the system abstained or failed.
        id: the answer's entity id, where it is an entity.
        path: the best path, or None.
        paths: all kept paths, best first.
        start: the start entity's label, empty where none was found.
        confidence: in [0, 1].
        provenance: how the answer came about (DESIGN section 1, principle 3).
        seconds: wall time of the question.
    """

    text: str
    id: str | None
    path: ScoredPath | None
    paths: tuple[ScoredPath, ...]
    start: str
    confidence: float
    provenance: str
    hops: int
    statement: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """Plain containers, for JSON."""
        return asdict(self)


class VisPath:
    """A system ready to answer, with the graph it walks."""

    def __init__(self, system: System, graph: KnowledgeGraph) -> None:
        self.system = system
        self.graph = graph

    @classmethod
    def from_checkpoint(
        cls,
        path: str | Path,
        *,
        graph: str | Path | None = None,
        transfer: bool = False,
        overrides: Sequence[str] = (),
    ) -> VisPath:
        """The trained system of a checkpoint.

        Args:
            path: a checkpoint that `train.py` wrote; `best` is the newest one below `outputs`.
            graph: a graph folder or built store to walk in place of the training graph's.
            transfer: allows a graph that the checkpoint was not trained on.
            overrides: Hydra overrides of `conf/eval.yaml`, such as `parts/texts=exact`.

        Raises:
            CheckpointError: a damaged checkpoint, or one for another graph without `transfer`.
        """
        content = read_checkpoint(resolve(path))
        saved, keys = content[KEY]["config"], decided_keys(content)
        config = without_prompts(with_checkpoint(load_config("eval", overrides), saved, overrides, keys))
        store = trained_store(content) if graph is None else store_of(graph, config.cache_dir)
        world = make_world(config, store)
        check_fit(content, world, transfer)
        return cls(build_system(config, world, content), world.graph)

    @classmethod
    def fixed(cls, graph: str | Path, overrides: Sequence[str] = ()) -> VisPath:
        """The paper's fixed scorers on a graph folder or store: no checkpoint, no training."""
        config = without_prompts(load_config("eval", ["parts=fixed", *overrides]))
        world = make_world(config, store_of(graph, config.cache_dir))
        return cls(build_system(config, world, None), world.graph)

    def ask(self, question: str, image: str | Path | Image | None = None, start: str | None = None) -> Answer:
        """Answers one question about a picture, or about an entity that it names.

        Args:
            question: the words.
            image: a picture file or a Pillow image.
            start: the start entity's id, where it is known.

        Raises:
            DataError: an empty question, or a picture that is missing, broken or too large.
            UnknownEntityError: a `start` that the graph does not hold.
        """
        if not question.strip():
            raise DataError("the question is empty: ask something")
        pixels = load_image(image) if isinstance(image, str | Path) else image
        topic = None if start is None else self.graph.entity_index(start)
        began = time.perf_counter()
        (prediction,) = self.system.answer([Query(question, pixels, topic)])
        return self._answer(prediction, time.perf_counter() - began)

    def predict(self, questions: Sequence[Question], batch_size: int = 64) -> Iterator[Answer]:
        """Answers many questions; a question with a topic entity starts there, others from image or name.

        One that cannot be asked (a missing picture, a topic that the graph does not hold) is `failed`, with
        the reason as its statement: it must not cost the answers of the others.
        """
        starts = range(0, len(questions), batch_size)
        for first in track(starts, "Answering", total=len(starts)):
            batch = questions[first : first + batch_size]
            asked = [self._query(question) for question in batch]
            queries = [one for one in asked if isinstance(one, Query)]
            began = time.perf_counter()
            predictions = iter(self.system.answer(queries) if queries else ())
            seconds = (time.perf_counter() - began) / len(batch)
            for one in asked:
                yield self._answer(next(predictions) if isinstance(one, Query) else one, seconds)

    def _query(self, question: Question) -> Query | Prediction:
        try:
            return to_query(question, self.graph, grant_start=question.topic_entity is not None)
        except VisPathError as error:
            log.warning("question %s cannot be asked: %s", question.id, error)
            return Prediction("", None, "failed", statement=str(error))

    def _answer(self, prediction: Prediction, seconds: float) -> Answer:
        graph = self.graph
        paths = tuple(self._words(path) for path in prediction.paths)
        entity = prediction.answer_entity
        return Answer(
            text=prediction.answer,
            id=None if entity is None else graph.entity_id(entity),
            path=paths[0] if paths else None,
            paths=paths,
            start=graph.label(prediction.candidates[0].entity) if prediction.candidates else "",
            confidence=prediction.confidence,
            provenance=prediction.provenance,
            hops=prediction.depth,
            statement=prediction.statement,
            seconds=seconds,
        )

    def _words(self, path: GraphPath) -> ScoredPath:
        labels = self.graph.labels(path.entities)
        relations = [self.graph.relation_label(relation) for relation in path.relations]
        return ScoredPath(labels[0], tuple(zip(relations, labels[1:], strict=True)), path.score)
