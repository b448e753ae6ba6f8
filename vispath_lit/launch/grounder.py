"""A learned grounder is trained before the parts that start from what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from vispath_lit.launch.parts import make, section
from vispath_lit.models.grounders.contrast import train_grounder
from vispath_lit.models.grounders.learned import LearnedGrounder
from vispath_lit.processes import is_first


def train_own_grounder(config: DictConfig, parts: Mapping[str, Any]) -> None:
    """Trains the grounder among the parts and freezes it; nothing where it has no weights.

    Of several processes the first one trains; the others take its weights when the walk begins.
    """
    grounder = parts.get("grounder")
    if not isinstance(grounder, LearnedGrounder):
        return
    if is_first():
        train_grounder(grounder, make(section(config.training.grounder), {}), config.seed)
    grounder.requires_grad_(False)
