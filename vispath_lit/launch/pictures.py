"""After the walk, the picture's reader is taught anew; kept if val does not lose by it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from omegaconf import DictConfig

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.launch.checkpoint import save_weights
from vispath_lit.launch.parts import make, section
from vispath_lit.launch.validation import Validation
from vispath_lit.models.closer_look import CloserLook, decided_by_pictures, look_closer
from vispath_lit.models.guided_walk import GuidedWalk
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.processes import is_first, shared
from vispath_lit.progress import console

ROUNDING = 1e-6  # a checkpoint's score is kept in single precision


def train_pictures(
    config: DictConfig,
    parts: Mapping[str, Any],
    walk: GuidedWalk,
    data: QuestionDataModule,
    search: Validation | None,
    metric: str,
    score: float,
    checkpoint: Path,
) -> float:
    """Looks closer at the training questions that a picture decides; nothing where there are none.

    Of several processes the first one trains; the others take its weights.

    Args:
        metric, score: of val, with the weights as they are.
        checkpoint: takes up what is kept.

    Returns:
        the score with the weights that are kept.
    """
    intent = parts["intent"]
    settings: CloserLook = make(section(config.training.closer_look), {})
    builder = data.builders["train"]
    rows = decided_by_pictures(builder.supervision.questions)
    if not isinstance(intent, LearnedIntent) or not intent.image_tokens or not settings.passes or not rows:
        return score
    reader = intent.picture
    before = deepcopy(reader.state_dict())
    if is_first():
        look_closer(walk, intent, builder.batch, rows, settings, config.seed)
    reader.load_state_dict(shared(reader.state_dict()))
    after = score if search is None else search()[metric]
    kept = after > score - ROUNDING
    words = f"a closer look at {len(rows)} questions: {metric} of val {after:.4f} after {score:.4f}"
    console.print(words if kept else f"{words}, so it is undone", highlight=False)
    if not kept:
        reader.load_state_dict(before)
        return score
    if is_first():
        save_weights(walk.parts, checkpoint)
        if search is not None and search.done is not None:
            search.write(search.done)
    return after
