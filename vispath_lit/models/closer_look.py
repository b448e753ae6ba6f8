"""A closer look at pictures, after the walk: beside finished words the picture's reader is taught anew.

While words are learned they leave most steps open, and the few pictures that decide one are drowned by the
many that do not; by the time that words are finished, those few have been learned by heart. So the
reader begins again, with those questions that nothing but a picture tells apart, and with others beside them,
by which the words learn when no picture is to be trusted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import AdamW

from vispath_lit.data.states import QuestionBatch
from vispath_lit.errors import ConfigError, at_least
from vispath_lit.models.guided_walk import GuidedWalk
from vispath_lit.models.intents.learned import LearnedIntent
from vispath_lit.models.residual import start_at_random
from vispath_lit.progress import track
from vispath_lit.types import Question

DrawBatch = Callable[[Sequence[int], Sequence[int]], QuestionBatch]


@dataclass(frozen=True, slots=True)
class CloserLook:
    """How the picture's reader is taught anew.

    Attributes:
        passes: over the questions that a picture decides; 0 leaves the reader as it is.
        batch: of these questions a step.
        others: questions at random beside them.
        lr: highest learning rate of AdamW, after a twentieth of the steps; it then falls as a cosine.
        weight_decay: of AdamW.
        beam_share: share of the questions that meet the model's own distractors.
    """

    passes: int = 6
    batch: int = 32
    others: int = 16
    lr: float = 1e-3
    weight_decay: float = 0.01
    beam_share: float = 0.8

    def __post_init__(self) -> None:
        at_least(0, "training.closer_look", passes=self.passes, others=self.others)
        at_least(1, "training.closer_look", batch=self.batch)
        if not 0 < self.lr < math.inf or not 0 <= self.weight_decay < math.inf:
            raise ConfigError(
                f"training.closer_look.lr is {self.lr} and weight_decay {self.weight_decay}; "
                "expected above 0 and not below 0"
            )
        if not 0 <= self.beam_share <= 1:
            raise ConfigError(
                f"training.closer_look.beam_share is {self.beam_share}; expected a share from 0 to 1"
            )


def decided_by_pictures(questions: Sequence[Question]) -> list[int]:
    """Rows of the questions that equal another in words and start, but not in picture and gold paths."""
    alike: dict[tuple[str, str | None], list[int]] = {}
    paths = [frozenset(question.gold_paths) for question in questions]
    for row, question in enumerate(questions):
        if question.image is not None and paths[row]:
            alike.setdefault((question.text, question.topic_entity), []).append(row)
    decided: list[int] = []
    for rows in alike.values():
        shown = {(questions[row].image, paths[row]) for row in rows}
        if len({walked for _, walked in shown}) > 1:  # many pictures of one answer are not compared pairwise
            for row in rows:
                image, mine = questions[row].image, paths[row]
                if any(image != other and mine != walked for other, walked in shown):
                    decided.append(row)
    return sorted(decided)


def look_closer(
    walk: GuidedWalk,
    intent: LearnedIntent,
    draw: DrawBatch,
    rows: Sequence[int],
    questions: int,
    settings: CloserLook,
    seed: int,
    residual_init: bool = True,
) -> None:
    """Trains the picture's reader anew, all other parts being as in the search.

    Args:
        walk: gives the losses of edges and of pictures.
        intent: has the reader.
        draw: makes a batch of the questions at rows, from a seed.
        rows: of the questions that a picture decides.
        questions: how many there are of all.
        seed: of weights, order and samples; the same one gives the same reader.
        residual_init: whether what the words trust of a picture begins at zero, as all corrections do.
    """
    batches = drawn(rows, questions, settings, np.random.default_rng(seed))
    device = intent.ask.device
    with only(intent.picture, walk.parts), torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        intent.forget_pictures()
        if not residual_init:
            start_at_random(intent.picture)
        weights = list(intent.picture.parameters())
        optimizer = AdamW(weights, settings.lr, betas=(0.9, 0.98), weight_decay=settings.weight_decay)
        for step, (number, some) in enumerate(track(batches, "a closer look at pictures")):
            optimizer.param_groups[0]["lr"] = settings.lr * rate(step, len(batches))
            losses = walk.run(draw(some, [seed, number]), settings.beam_share).losses
            optimizer.zero_grad()
            (losses["edge"] + losses["picture"]).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(weights, 1.0)
            optimizer.step()


def drawn(
    rows: Sequence[int], questions: int, settings: CloserLook, rng: np.random.Generator
) -> list[tuple[int, list[int]]]:
    """Every batch with the number of its pass: some of `rows`, and others of the questions beside them."""
    rest = np.setdiff1d(np.arange(questions), rows)
    batches: list[tuple[int, list[int]]] = []
    for number in range(settings.passes):
        order = rng.permutation(np.asarray(rows, dtype=np.int64))
        for low in range(0, len(order), settings.batch):
            beside = rng.choice(rest, min(settings.others, len(rest)), replace=False)
            batches.append((number, [*order[low : low + settings.batch].tolist(), *beside.tolist()]))
    return batches


def rate(step: int, steps: int) -> float:
    """The learning rate's factor: a short rise, then half a cosine down to nothing."""
    warm = max(1, steps // 20)
    return min(1.0, (step + 1) / warm) * 0.5 * (1 + math.cos(math.pi * step / steps))


@contextmanager
def only(reader: nn.Module, parts: nn.Module) -> Iterator[None]:
    """Within it the reader alone is trained: the other parts of `parts` are frozen and without dropout."""
    before = {weight: weight.requires_grad for weight in parts.parameters()}
    parts.requires_grad_(False).eval()
    reader.requires_grad_(True).train()
    try:
        yield
    finally:
        parts.eval()
        for weight, trained in before.items():
            weight.requires_grad_(trained)
