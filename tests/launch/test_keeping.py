"""Which weights a run keeps."""

from __future__ import annotations

from pathlib import Path

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from vispath_lit.launch.keeping import BEST, Best


class Scored(pl.LightningModule):
    """One weight that grows by one a pass, and a score for each pass."""

    def __init__(self, scores: list[float]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.scores = scores

    def training_step(self, batch: Tensor) -> Tensor:
        return -self.weight

    def validation_step(self, batch: Tensor) -> None:
        self.log("val/hits@1", self.scores[self.current_epoch])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=1.0)


def test_of_equally_good_weights_the_later_ones_are_kept(tmp_path: Path) -> None:
    best = Best(tmp_path, "val/hits@1", None)
    trainer = pl.Trainer(
        max_epochs=5,
        callbacks=[best],
        logger=False,
        accelerator="cpu",
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    one = DataLoader(TensorDataset(torch.zeros(1)))
    trainer.fit(Scored([0.5, 0.75, 0.75, 0.5, float("nan")]), one, one)
    assert best.best_model_score == 0.75
    weights = torch.load(tmp_path / BEST, weights_only=True)["state_dict"]
    assert weights["weight"] == 3, "after the third pass"
    assert [file.name for file in tmp_path.iterdir()] == [BEST]
