"""The LightningModule: it is handed finished parts and only trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import pytorch_lightning as pl
from torch import Tensor, distributed
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR

from vispath_lit.data.states import QuestionBatch
from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.models.guided_walk import GuidedWalk, WalkResult
from vispath_lit.models.model import LearnedParts
from vispath_lit.processes import count, gathered, rank, shared

Validate = Callable[[], Mapping[str, float]]
Sums = dict[str, tuple[float, float]]
REMEMBERED = "remembered"
FLOOR = 0.01  # of the learning rate, at the end of its cosine


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """The numbers of the optimiser.

    Attributes:
        lr: highest learning rate.
        weight_decay: of AdamW, on matrices alone.
        warmup: share of the steps in which the learning rate rises; it then falls as a cosine.
        beam_share: share of the questions that meet the model's own distractors, from half-way on; it grows
            from zero.
    """

    lr: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.05
    beam_share: float = 0.8

    def __post_init__(self) -> None:
        for key in ("warmup", "beam_share"):
            if not 0 <= getattr(self, key) <= 1:
                raise ConfigError(f"training.{key} is {getattr(self, key)}; expected a share from 0 to 1")
        if self.lr <= 0 or self.weight_decay < 0:
            raise ConfigError(
                f"training.lr is {self.lr} and weight_decay {self.weight_decay}; "
                "expected above 0 and not below 0"
            )


class VisPathModule(pl.LightningModule):
    """Trains `parts` along guided walks.

    Args:
        parts: what is trained and saved.
        walk: computes the losses of a batch with these parts.
        settings: numbers of the optimiser.
        validate: the search on the validation questions with the parts as they are; its values are logged as
            `val/<name>` after each validation, for the choice of the best checkpoint.
    """

    def __init__(
        self,
        parts: LearnedParts,
        walk: GuidedWalk,
        settings: TrainingSettings | None = None,
        validate: Validate | None = None,
    ) -> None:
        super().__init__()
        self.parts = parts
        self.walk = walk
        self.settings = settings or TrainingSettings()
        self.validate = validate
        # Frozen weights are not in a checkpoint; on_load_checkpoint checks the others.
        self.strict_loading = False
        self._matrices = {name for name, weight in parts.named_parameters() if weight.ndim > 1}
        self._seen: list[tuple[int, Sums]] = []
        self.save_hyperparameters({**asdict(self.settings), **asdict(walk.settings)})

    def setup(self, stage: str) -> None:
        """Several processes start from the first one's weights, which it may have trained before."""
        if count() > 1:
            state, trained = self.parts.state_dict(), self.parts.trained_names()
            self.parts.load_state_dict(shared({name: state[name] for name in trained}), strict=False)

    def on_train_batch_start(self, batch: QuestionBatch, batch_idx: int) -> None:
        self.parts.begin_step(batch_idx)

    def training_step(self, batch: QuestionBatch, batch_idx: int) -> Tensor:
        result = self.walk.run(batch, self._beam_share())
        self._log_step(result, len(batch))
        return result.loss

    def on_validation_epoch_start(self) -> None:
        self._seen = []

    def validation_step(self, batch: QuestionBatch | None, batch_idx: int) -> None:
        if batch is not None:  # the last round of several processes may have too few
            self._seen.append((batch_idx * count() + rank(), sums(self.walk.run(batch, 1.0), len(batch))))

    def on_validation_epoch_end(self) -> None:
        totals: Sums = {}
        seen = [one for part in gathered(self._seen) for one in part]
        for _, found in sorted(seen, key=lambda one: one[0]):  # so that a sum has the same bits
            for name, (total, of) in found.items():
                before = totals.get(name, (0.0, 0.0))
                totals[name] = before[0] + total, before[1] + of
        for name, (total, of) in totals.items():
            self.log(f"val/{name}", total / of, sync_dist=True)
        if self.validate is not None:
            with self._whole():
                scores = self.validate()
            for name, value in scores.items():
                self.log(f"val/{name}", float(value), sync_dist=True)

    def configure_optimizers(self) -> Any:
        settings = self.settings
        # By name: where weights are divided among processes, each sees flat pieces of them.
        weights = [
            (name in self._matrices, w) for name, w in self.parts.named_parameters() if w.requires_grad
        ]
        groups = [
            {"params": [w for matrix, w in weights if matrix], "weight_decay": settings.weight_decay},
            {"params": [w for matrix, w in weights if not matrix], "weight_decay": 0.0},
        ]
        optimizer = AdamW(groups, lr=settings.lr, betas=(0.9, 0.98))
        steps = self.trainer.estimated_stepping_batches
        if not math.isfinite(steps):
            raise ConfigError(
                "training needs an end for its learning rate: set trainer.max_epochs or max_steps"
            )
        schedule = LambdaLR(optimizer, warm_cosine(int(steps), settings.warmup))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_after_backward(self) -> None:
        """Averages the gradients of single numbers, which FSDP leaves alone."""
        if not isinstance(self.trainer.strategy.model, FullyShardedDataParallel):
            return
        for weight in self.parts.parameters():
            if weight.ndim == 0 and weight.grad is not None:
                distributed.all_reduce(weight.grad)
                weight.grad /= distributed.get_world_size()

    def configure_gradient_clipping(
        self,
        optimizer: Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """By the norm of the whole gradient, of which each process has a piece under FSDP."""
        root = self.trainer.strategy.model
        by_norm = gradient_clip_algorithm in (None, "norm")
        if isinstance(root, FullyShardedDataParallel) and gradient_clip_val and by_norm:
            root.clip_grad_norm_(gradient_clip_val)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps trained weights alone: a frozen backbone is not part of a checkpoint.

        Beside them what the next steps use again, of each process.
        """
        checkpoint[REMEMBERED] = gathered(self.parts.remembered())
        trained = self._trained()
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        weights = checkpoint.get("state_dict", self._trained())  # FSDP has loaded and checked them by now
        if odd := sorted(self._trained() ^ set(weights)):
            raise CheckpointError(
                f"the checkpoint does not fit the configured parts: {len(odd)} weights are on one side only, "
                f"such as {odd[:3]}; use the configuration that it was trained with"
            )
        states = checkpoint.get(REMEMBERED)
        if isinstance(states, list) and len(states) == count() and isinstance(states[rank()], dict):
            self.parts.remember(states[rank()])

    def _whole(self) -> AbstractContextManager[None]:
        """The search walks through the parts one by one, so it needs their weights undivided."""
        root = self.trainer.strategy.model
        if not isinstance(root, FullyShardedDataParallel):
            return nullcontext()
        whole: AbstractContextManager[None] = FullyShardedDataParallel.summon_full_params(
            root, writeback=False
        )
        return whole

    def _trained(self) -> set[str]:
        return {f"parts.{name}" for name in self.parts.trained_names()}

    def _beam_share(self) -> float:
        """Grows with the steps to its full value half-way."""
        done = self.global_step / max(1.0, float(self.trainer.estimated_stepping_batches))
        return self.settings.beam_share * min(1.0, 2 * done)

    def _log_step(self, result: WalkResult, questions: int) -> None:
        self.log("train/loss", result.loss.detach(), batch_size=questions, prog_bar=True)
        for name, loss in result.losses.items():
            self.log(f"train/{name}_loss", loss.detach(), batch_size=questions)
        for name, (hits, of) in result.counts.items():
            if of:
                self.log(f"train/{name}", hits / of, batch_size=int(of))


def sums(result: WalkResult, questions: int) -> Sums:
    """Losses and hits of a batch, each as its sum and what it is to be divided by."""
    losses = {"loss": result.loss} | {f"{name}_loss": loss for name, loss in result.losses.items()}
    found = {name: (float(loss.detach()) * questions, float(questions)) for name, loss in losses.items()}
    return found | {name: hits for name, hits in result.counts.items() if hits[1]}


def warm_cosine(steps: int, warmup: float) -> Callable[[int], float]:
    """The factor of the learning rate at each step: a linear rise, then a cosine down to 0.01."""
    warm = max(1, round(warmup * steps))

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / max(1, steps - warm))
        return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done))

    return factor
