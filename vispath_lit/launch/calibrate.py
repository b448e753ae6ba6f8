"""After training: the confidence of answers is fitted on validation questions and joins the checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from torch import nn

from vispath_lit.evaluation.evaluator import ask
from vispath_lit.evaluation.scoring import score
from vispath_lit.launch.checkpoint import save_weights
from vispath_lit.launch.parts import World
from vispath_lit.models.model import LearnedParts
from vispath_lit.processes import is_first, shared, together
from vispath_lit.protocols import System
from vispath_lit.types import Prediction, Question

BATCH = 256


class Fittable(Protocol):
    """An `AnswerSelector` whose confidence is fitted."""

    def fit(self, predictions: Sequence[Prediction], right: Sequence[bool]) -> None: ...


def calibrate(
    world: World,
    selector: Any,
    system: System,
    questions: Sequence[Question],
    learned: LearnedParts,
    checkpoint: Path,
) -> None:
    """Fits the selector where it can be, from the image and with the start given; saves the result.

    Several processes share the questions; the first one fits and saves, the others take what it found.
    """
    if not hasattr(selector, "fit") or not questions:
        return
    found: list[Prediction] = []
    right: list[bool] = []

    def work(part: tuple[list[Question], bool]) -> list[tuple[Prediction, bool]]:
        batch, start = part
        predictions = ask(system, batch, world.graph, grant_start=start)
        records = score(batch, predictions, [""] * len(batch), world.graph, world.text_encoder)
        pairs = zip(predictions, records, strict=True)
        return [(one, record.scores["hits@1"] == 1) for one, record in pairs if "hits@1" in record.scores]

    for done in together(list(_batches(questions)), work, "fitting the confidence"):
        found += [prediction for prediction, _ in done]
        right += [hit for _, hit in done]
    if is_first():
        cast(Fittable, selector).fit(found, right)
        save_weights(learned, checkpoint)
    if isinstance(selector, nn.Module):
        selector.load_state_dict(shared(selector.state_dict()))


def _batches(questions: Sequence[Question]) -> Iterator[tuple[list[Question], bool]]:
    """Questions as users ask them, then those with a topic with it given."""
    topics = [question for question in questions if question.topic_entity]
    for asked, start in ((questions, False), (topics, True)):
        for low in range(0, len(asked), BATCH):
            yield list(asked[low : low + BATCH]), start
