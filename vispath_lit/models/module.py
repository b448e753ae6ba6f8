"""The LightningModule: it is handed finished parts and only trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytorch_lightning as pl
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from vispath_lit.data.states import QuestionBatch
from vispath_lit.errors import CheckpointError, ConfigError
from vispath_lit.models.guided_walk import GuidedWalk, WalkResult
from vispath_lit.models.model import LearnedParts

Validate = Callable[[], Mapping[str, float]]
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
        self.strict_loading = (
            False  # frozen weights are not in a checkpoint; on_load_checkpoint checks the others
        )
        self.save_hyperparameters({**asdict(self.settings), **asdict(walk.settings)})

    def on_train_batch_start(self, batch: QuestionBatch, batch_idx: int) -> None:
        self.parts.begin_step(batch_idx)

    def training_step(self, batch: QuestionBatch, batch_idx: int) -> Tensor:
        result = self.walk.run(batch, self._beam_share())
        self._log_all("train", result, len(batch))
        return result.loss

    def validation_step(self, batch: QuestionBatch, batch_idx: int) -> None:
        self._log_all("val", self.walk.run(batch, 1.0), len(batch))

    def on_validation_epoch_end(self) -> None:
        if self.validate is not None:
            for name, value in self.validate().items():
                self.log(f"val/{name}", float(value), sync_dist=True)

    def configure_optimizers(self) -> Any:
        settings = self.settings
        weights = [weight for weight in self.parts.parameters() if weight.requires_grad]
        groups = [
            {"params": [w for w in weights if w.ndim > 1], "weight_decay": settings.weight_decay},
            {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
        ]
        optimizer = AdamW(groups, lr=settings.lr, betas=(0.9, 0.98))
        steps = self.trainer.estimated_stepping_batches
        if not math.isfinite(steps):
            raise ConfigError(
                "training needs an end for its learning rate: set trainer.max_epochs or max_steps"
            )
        schedule = LambdaLR(optimizer, warm_cosine(int(steps), settings.warmup))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keeps trained weights alone: a frozen backbone is not part of a checkpoint."""
        trained = self._trained()
        checkpoint["state_dict"] = {k: v for k, v in checkpoint["state_dict"].items() if k in trained}

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        if odd := sorted(self._trained() ^ set(checkpoint["state_dict"])):
            raise CheckpointError(
                f"the checkpoint does not fit the configured parts: {len(odd)} weights are on one side only, "
                f"such as {odd[:3]}; use the configuration that it was trained with"
            )

    def _trained(self) -> set[str]:
        return {f"parts.{name}" for name in self.parts.trained_names()}

    def _beam_share(self) -> float:
        """Grows with the steps to its full value half-way."""
        done = self.global_step / max(1.0, float(self.trainer.estimated_stepping_batches))
        return self.settings.beam_share * min(1.0, 2 * done)

    def _log_all(self, stage: str, result: WalkResult, questions: int) -> None:
        self.log(f"{stage}/loss", result.loss.detach(), batch_size=questions, prog_bar=stage == "train")
        for name, loss in result.losses.items():
            self.log(f"{stage}/{name}_loss", loss.detach(), batch_size=questions)
        for name, (hits, of) in result.counts.items():
            if of:
                self.log(f"{stage}/{name}", hits / of, batch_size=int(of))


def warm_cosine(steps: int, warmup: float) -> Callable[[int], float]:
    """The factor of the learning rate at each step: a linear rise, then a cosine down to 0.01."""
    warm = max(1, round(warmup * steps))

    def factor(step: int) -> float:
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / max(1, steps - warm))
        return FLOOR + (1 - FLOOR) * 0.5 * (1 + math.cos(math.pi * done))

    return factor
