"""Fit, then test through the search loop: `python train.py [KEY=VALUE ...]`; `--help` lists the keys."""

from __future__ import annotations

import hydra
from omegaconf import DictConfig

from vispath_lit.launch.config import conf_dir
from vispath_lit.launch.main import guarded, launch
from vispath_lit.launch.train import train


@hydra.main(config_path=str(conf_dir()), config_name="train", version_base="1.3")
def main(config: DictConfig) -> float | None:
    """Trains the system of `config` and prints the table that ends the run; a sweep gets the val score."""
    return guarded(lambda: train(config), config)


if __name__ == "__main__":
    launch(main)
