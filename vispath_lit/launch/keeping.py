"""What training keeps so that a killed run, taken up again, ends at the bits of an undisturbed one.

checkpoints/best.ckpt    the best weights so far
checkpoints/walk.ckpt    the same before what comes after the walk has changed them (`launch/pictures.py`)
checkpoints/last.ckpt    weights and everything else that the next step depends on, never half-written
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import Checkpoint, ModelCheckpoint
from torch import Tensor

from vispath_lit.errors import CheckpointError
from vispath_lit.processes import count, gathered, is_first, rank
from vispath_lit.whole import whole_file

BEST, WALK, LAST = "best.ckpt", "walk.ckpt", "last.ckpt"


class Best(ModelCheckpoint):
    """Keeps the best weights by `monitor`; a resumed run takes over the best ones so far into its own folder.

    Of equally good ones the later are kept, which have seen more and, late in a schedule, were trained at a
    lower rate: a small validation set soon has all questions right.

    Args:
        folder: of the checkpoints.
        resumed: the checkpoint that the run goes on from; the best one is looked for beside it.
    """

    def __init__(self, folder: Path, monitor: str, resumed: str | None = None) -> None:
        super().__init__(
            dirpath=folder,
            filename="best",
            monitor=monitor,
            mode="max",
            enable_version_counter=False,
            save_on_train_epoch_end=False,  # but with the validation, before `Last` keeps what is the best
        )
        self.before = None if resumed is None else best_of_walk(Path(resumed).parent)
        self.file = folder / BEST

    def check_monitor_top_k(self, trainer: pl.Trainer, current: Tensor | None = None) -> bool:
        """Whether the weights that reached `current` are to be kept."""
        equal = current is not None and bool(current == self.best_model_score)
        if trainer.strategy.reduce_boolean_decision(equal):
            return True
        return super().check_monitor_top_k(trainer, current)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Names in a checkpoint may be of another machine, so only its score is taken."""
        score = state_dict.get("best_model_score")
        if (
            not isinstance(score, Tensor)
            or score.numel() != 1
            or not self.before
            or not self.before.is_file()
        ):
            return
        if is_first() and self.before.resolve() != self.file.resolve():
            copy_whole(self.before, self.file)
            self.file.with_name(WALK).unlink(missing_ok=True)  # a later epoch may be the better one
        name = str(self.file)
        self.best_model_score, self.kth_value = score, score
        self.best_model_path, self.kth_best_model_path = name, name
        self.best_k_models = {name: score}


def best_of_walk(folder: Path) -> Path:
    """The best weights of a walk, to which its score belongs."""
    walk = folder / WALK
    return walk if walk.is_file() else folder / BEST


def copy_whole(source: Path, target: Path) -> None:
    """Copies a file, whole or not at all."""
    with whole_file(target) as partial:
        shutil.copyfile(source, partial)


class Last(Checkpoint):
    """Keeps the newest state: every `every` steps, and after each validation.

    It must come after other checkpoint callbacks, whose state it holds.
    """

    def __init__(self, folder: Path, every: int) -> None:
        self.file = folder / LAST
        self.every = every
        self._saved = -1

    def on_train_batch_end(self, trainer: pl.Trainer, *_: object) -> None:
        if trainer.global_step % self.every == 0 and trainer.global_step != self._saved:
            self._save(trainer)

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.state.fn == "fit" and not trainer.sanity_checking:
            self._save(trainer)

    def _save(self, trainer: pl.Trainer) -> None:
        self._saved = trainer.global_step
        partial = self.file.with_name(f".{LAST}.partial")
        trainer.save_checkpoint(partial, weights_only=False)
        if trainer.is_global_zero:
            partial.replace(self.file)


class RandomStates(pl.Callback):
    """Stores where torch's random numbers are, of each process: a resumed run draws the same ones."""

    def __init__(self) -> None:
        self._resumed: dict[str, Tensor] | None = None

    def state_dict(self) -> dict[str, Any]:
        own = {"cpu": torch.get_rng_state()}
        if torch.cuda.is_available():
            own["cuda"] = torch.cuda.get_rng_state()
        return {"processes": gathered(own)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        states = state_dict.get("processes")
        if not isinstance(states, list) or not all(_is_state(state) for state in states):
            raise CheckpointError(
                "the checkpoint's random states are damaged: "
                "say transfer=true to start from its weights alone"
            )
        if len(states) == count():  # else nothing can be the same anyway
            self._resumed = states[rank()]

    def on_train_batch_start(self, *_: object) -> None:
        """At the last moment, as what comes before may draw some."""
        if self._resumed is not None:
            torch.set_rng_state(self._resumed["cpu"])
            if "cuda" in self._resumed and torch.cuda.is_available():
                torch.cuda.set_rng_state(self._resumed["cuda"])
            self._resumed = None


def _is_state(value: object) -> bool:
    """Whether it is what `state_dict` gives: torch would read over the end of a short one."""
    size = torch.get_rng_state().shape
    if not isinstance(value, dict) or not isinstance(cpu := value.get("cpu"), Tensor):
        return False
    cuda = value.get("cuda", torch.empty(0, dtype=torch.uint8))
    return (
        cpu.dtype == torch.uint8
        and cpu.shape == size
        and isinstance(cuda, Tensor)
        and cuda.dtype == torch.uint8
    )
