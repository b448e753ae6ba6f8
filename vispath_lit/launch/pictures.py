"""After the walk, the picture's reader is taught anew; kept if val does not lose by it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.evaluation.evaluator import Evaluation
from vispath_lit.launch.checkpoint import save_weights
from vispath_lit.launch.keeping import WALK, copy_whole
from vispath_lit.launch.validation import Validation
from vispath_lit.models.closer_look import CloserLook, decided_by_pictures, look_closer
from vispath_lit.models.edge_scorers.learned import LearnedEdgeScorer
from vispath_lit.models.guided_walk import GuidedWalk
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.processes import is_first, shared
from vispath_lit.progress import console


@dataclass(frozen=True, slots=True)
class ValScore:
    """Means of one metric over val questions.

    Attributes:
        all: of all of them.
        decided: of those that a picture decides; of none, zero.
    """

    all: float
    decided: float


def train_pictures(
    settings: CloserLook,
    parts: Mapping[str, Any],
    walk: GuidedWalk,
    data: QuestionDataModule,
    search: Validation,
    metric: str,
    checkpoint: Path,
    seed: int,
    residual_init: bool = True,
) -> float | None:
    """Looks closer at the training questions that a picture decides; nothing if they do not fill one batch.

    Of several processes the first one trains; the others take its weights.

    Args:
        metric: of val; neither all questions nor those that a picture decides may lose by it.
        checkpoint: has the weights of the walk, and takes up what is kept; the former are then `walk.ckpt`.
        residual_init: as the other parts have begun.

    Returns:
        the metric with the new reader; None where the walk's own is kept.
    """
    intent, builder = parts["intent"], data.builders["train"]
    if not isinstance(intent, LearnedIntent) or not intent.image_tokens or not settings.passes:
        return None
    rows = decided_by_pictures(builder.supervision.questions)
    if len(rows) < settings.batch or not isinstance(parts["edge_scorer"], LearnedEdgeScorer):
        return None
    before, walked = _score(search, metric), deepcopy(intent.picture.state_dict())
    if is_first():
        of_all = len(builder.supervision.questions)
        look_closer(walk, intent, builder.batch, rows, of_all, settings, seed, residual_init)
    intent.picture.load_state_dict(shared(intent.picture.state_dict()))
    after = _score(search, metric)
    kept = after.all >= before.all and after.decided >= before.decided
    words = f"a closer look at {len(rows)} questions: {metric} of val {after.all:.4f} after {before.all:.4f}"
    console.print(words if kept else f"{words}, so it is undone", highlight=False, soft_wrap=True)
    if not kept:
        intent.picture.load_state_dict(walked)
    if kept and is_first():
        copy_whole(checkpoint, checkpoint.with_name(WALK))
        save_weights(walk.parts, checkpoint)
        assert search.done is not None
        search.write(search.done)
    return after.all if kept else None


def _score(search: Validation, metric: str) -> ValScore:
    overall = search()[metric]
    done: Evaluation | None = search.done
    assert done is not None
    decided = decided_by_pictures(search.questions)
    values = [done.records[row].scores[metric] for row in decided if metric in done.records[row].scores]
    return ValScore(overall, sum(values) / max(1, len(values)))
