"""Finds, composes and merges configs, the same for a clone, a wheel and a checkpoint."""

from __future__ import annotations

import importlib
import inspect
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import platformdirs
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from vispath_lit.errors import CheckpointError, ConfigError

# What a checkpoint decides about a system; the rest of a config belongs to the run that uses it.
SYSTEM_KEYS = ("text_encoder", "image_encoder", "parts", "data")
# How much of the data is asked is the run's own choice, or a quick training would shrink every later test.
RUN_KEYS = ("data.split", "data.limit", "data.train_limit")


def conf_dir() -> Path:
    """The folder of configs: inside the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parents[1]
    inside = package / "conf"
    return inside if inside.is_dir() else package.parent / "conf"


def cache_dir() -> str:
    """`$VISPATH_CACHE`, else the user's cache folder of the platform."""
    return os.environ.get("VISPATH_CACHE") or platformdirs.user_cache_dir("vispath-lit", appauthor=False)


def started(pattern: str) -> str:
    """When the run began, the same for all of its processes."""
    return time.strftime(pattern, time.localtime(float(os.environ.get("VISPATH_STARTED") or time.time())))


OmegaConf.register_new_resolver("vispath_cache", cache_dir, replace=True)
OmegaConf.register_new_resolver("vispath_started", started, replace=True, use_cache=True)


def load_config(name: str, overrides: Sequence[str] = ()) -> DictConfig:
    """Composes `conf/<name>.yaml` with Hydra overrides, outside a Hydra job.

    Raises:
        ConfigError: an override that names no key or no choice.
    """
    GlobalHydra.instance().clear()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            return compose(name, overrides=list(overrides))
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"in the overrides {list(overrides)}: {error}") from error


def plain(config: DictConfig) -> dict[str, Any]:
    """The config as resolved plain containers, fit for a checkpoint."""
    container = OmegaConf.to_container(config, resolve=True)
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}


def with_checkpoint(
    config: DictConfig, saved: dict[str, Any], overrides: Sequence[str], keys: Sequence[str] = SYSTEM_KEYS
) -> DictConfig:
    """The run's config with the checkpoint's system, save what the user overrode by name.

    An override of a whole choice (`parts/texts=exact`) takes the run's node, one of a value
    (`parts.search.m3=5`) takes the run's value; what an experiment sets counts as named. Split and limits are
    always the run's.

    Args:
        keys: what of the config the checkpoint decides about.

    Raises:
        CheckpointError: a config that is not one of a system, or that names a class of another package.
    """
    merged = config.copy()
    OmegaConf.set_struct(merged, False)
    for key in keys:
        if not isinstance(saved.get(key), dict):
            raise CheckpointError(f"the checkpoint's config has no {key}; use another checkpoint")
        merged[key] = OmegaConf.create(saved[key])
    for key in RUN_KEYS:
        OmegaConf.update(merged, key, OmegaConf.select(config, key))
    for override in [*_of_experiments(overrides, keys), *overrides]:
        key = override.split("=", 1)[0].lstrip("+~").split("@", 1)[0].replace("/", ".")
        if key.split(".")[0] in keys:
            OmegaConf.update(merged, key, OmegaConf.select(config, key), merge=False)
    trusted = set(_targets(OmegaConf.to_container(config, resolve=False)))
    for key in keys:
        for target in _targets(OmegaConf.to_container(merged[key], resolve=False)):
            if target not in trusted:
                _check_target(target)
    return merged


def _of_experiments(overrides: Sequence[str], keys: Sequence[str]) -> Iterator[str]:
    """The keys of a system that the experiments among the overrides choose or set."""
    chosen = [value for key, _, value in (one.partition("=") for one in overrides) if key == "experiment"]
    names = [name.strip() for value in chosen for name in value.strip("[]").split(",")]
    for name in names:
        node = OmegaConf.to_container(OmegaConf.load(conf_dir() / "experiment" / f"{name}.yaml"))
        assert isinstance(node, dict)
        for choice in node.get("defaults", ()):
            if isinstance(choice, dict):
                yield from (str(key).removeprefix("override /") for key in choice)
        yield from (key for key in _leaves(node) if key.split(".")[0] in keys)


def _leaves(node: dict[Any, Any], path: str = "") -> Iterator[str]:
    """Dotted keys of every value."""
    for key, value in node.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


def _targets(node: object) -> Iterator[object]:
    """Every `_target_` at any depth."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "_target_":
                yield value
            yield from _targets(value)
    elif isinstance(node, list):
        for value in node:
            yield from _targets(value)


def _check_target(target: object) -> None:
    """Refuses what a checkpoint may not name: it is untrusted, and a class of Python can run a program."""
    module, _, name = str(target).rpartition(".")
    if module.startswith("vispath_lit."):
        try:
            found = getattr(importlib.import_module(module), name, None)
        except (ImportError, ValueError):
            found = None
        if inspect.isclass(found) and found.__module__ == module:
            return
    raise CheckpointError(
        f"the checkpoint asks for the part {target!r}, which is no class of this package; it was not run. "
        "If it is yours, name it in an override, such as parts.edge_scorer._target_=..."
    )
