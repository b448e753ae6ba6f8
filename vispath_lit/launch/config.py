"""Finds, composes and merges configs, the same for a clone, a wheel and a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import platformdirs
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from vispath_lit.errors import ConfigError

# What a checkpoint decides about a system; the rest of a config belongs to the run that uses it.
SYSTEM_KEYS = ("text_encoder", "image_encoder", "parts", "data")


def conf_dir() -> Path:
    """The folder of configs: inside the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def cache_dir() -> str:
    """`$VISPATH_CACHE`, else the user's cache folder of the platform."""
    return os.environ.get("VISPATH_CACHE") or platformdirs.user_cache_dir("vispath-lit", appauthor=False)


OmegaConf.register_new_resolver("vispath_cache", cache_dir, replace=True)


def load_config(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Composes `conf/<name>.yaml` with Hydra overrides, outside a Hydra job.

    Raises:
        ConfigError: an override that names no key or no choice.
    """
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return compose(name, overrides=list(overrides))
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"in the overrides {list(overrides)}: {error}") from error


def plain(config: DictConfig) -> dict[str, Any]:
    """The config as resolved plain containers, fit for a checkpoint."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def with_checkpoint(config: DictConfig, saved: dict[str, Any], overrides: Sequence[str]) -> DictConfig:
    """The run's config with the checkpoint's system, save what the user overrode by name.

    An override of a whole choice (`parts/texts=exact`) takes the run's node, one of a value
    (`parts.search.m3=5`) takes the run's value.
    """
    merged = config.copy()
    OmegaConf.set_struct(merged, False)
    for key in SYSTEM_KEYS:
        if key in saved:
            merged[key] = OmegaConf.create(saved[key])
    for override in overrides:
        key = override.split("=", 1)[0].lstrip("+~").split("@", 1)[0].replace("/", ".")
        if key.split(".")[0] in SYSTEM_KEYS:
            OmegaConf.update(merged, key, OmegaConf.select(config, key), merge=False)
    return merged
