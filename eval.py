"""Evaluate a checkpoint or a fixed system: `python eval.py ckpt_path=PATH data.split=test`."""

from __future__ import annotations

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from vispath_lit.launch.config import conf_dir
from vispath_lit.launch.evaluate import evaluate_run
from vispath_lit.launch.main import guarded, launch


@hydra.main(config_path=str(conf_dir()), config_name="eval", version_base="1.3")
def main(config: DictConfig) -> None:
    """Evaluates the system of `config` on one split and prints its tables."""
    overrides = HydraConfig.get().overrides.task
    guarded(lambda: evaluate_run(config, overrides), config)


if __name__ == "__main__":
    launch(main)
