"""Builds the parts once, in order. A part asks for what it needs by the names of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import (
    InterpolationToMissingValueError,
    MissingMandatoryValue,
    OmegaConfBaseException,
)

from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.launch.config import conf_dir
from vispath_lit.launch.values import check_values, first_line
from vispath_lit.protocols import ChatBackend, ImageEncoder, QuestionSource, System, TextEncoder

# The order in which parts are built: each may ask for the ones before it by name.
PARTS = (
    "texts",
    "analyzer",
    "grounder",
    "neighbourhood",
    "vlm",
    "intent",
    "edge_scorer",
    "chain_scorer",
    "examiner",
    "judge",
    "selector",
    "search",
)


@dataclass(frozen=True)
class World:
    """What every system of a run shares: data, graph and encoders, each built once."""

    source: QuestionSource | None
    graph: KnowledgeGraph
    text_encoder: TextEncoder
    image_encoder: ImageEncoder
    cache_dir: Path
    chat: ChatBackend | None = None

    def resources(self) -> dict[str, Any]:
        """The names that a part may ask for."""
        return {
            "graph": self.graph,
            "text_encoder": self.text_encoder,
            "image_encoder": self.image_encoder,
            "cache_dir": self.cache_dir,
            **({} if self.chat is None else {"chat": self.chat}),
        }


def make(config: Mapping[str, Any], resources: Mapping[str, Any]) -> Any:
    """Builds `_target_` from its config and the resources that its parameters name.

    A nested mapping with a `_target_` is built first, so that a learned part can wrap a fixed one.

    Raises:
        ConfigError: a target that does not exist, or parameters that do not fit it by name or type.
    """
    target = config.get("_target_")
    if not isinstance(target, str):
        raise ConfigError(f"a part needs a _target_, found {dict(config)}")
    try:
        cls = get_class(target)
    except Exception as error:  # Hydra raises whatever the import raised
        raise ConfigError(f"_target_ {target!r} cannot be imported: {first_line(error)}") from error
    parameters = inspect.signature(cls).parameters
    given = {str(key): value for key, value in config.items() if key != "_target_"}
    unknown = sorted(set(given) - set(parameters))
    if unknown:
        raise ConfigError(f"{target} has no parameter {unknown}; it takes {sorted(parameters)}")
    values = {
        key: make(value, resources) if isinstance(value, Mapping) and "_target_" in value else value
        for key, value in given.items()
    }
    asked = {key: value for key, value in resources.items() if key in parameters and key not in values}
    missing = [
        name
        for name, parameter in parameters.items()
        if parameter.default is inspect.Parameter.empty and name not in values and name not in asked
    ]
    if missing:
        hint = "; choose a language model with chat=openai or chat=hf_local" if "chat" in missing else ""
        raise ConfigError(f"{target} needs {missing}, which neither its config nor the run gives{hint}")
    check_values(cls, values, target)
    return cls(**values, **asked)


def make_world(config: DictConfig, store: Path | None = None, run: Path | None = None) -> World:
    """Prepares the data and opens graph and encoders.

    Args:
        store: takes the place of the data's own graph.
        run: the run's folder, by which its requests to language models are counted over all of its sessions.
    """
    cache = Path(config.cache_dir).expanduser()
    resources: dict[str, Any] = {"cache_dir": cache}
    source: QuestionSource | None = None
    if store is None:
        source = make(section(config.data.source), resources)
        store = source.prepare()
    return World(
        source=source,
        graph=KnowledgeGraph.open(store),
        text_encoder=make(section(config.text_encoder), resources),
        image_encoder=make(section(config.image_encoder), resources),
        cache_dir=cache,
        chat=_chat(config, {**resources, "run": "" if run is None else str(run)}),
    )


def _chat(config: DictConfig, resources: Mapping[str, Any]) -> ChatBackend | None:
    """The language models of prompted parts; None where none are chosen."""
    if config.get("chat") is None or config.chat.backend is None:
        return None
    backend: ChatBackend = make(section(config.chat.backend), resources)
    return backend


def make_parts(config: DictConfig, world: World, wanted: Collection[str] = PARTS) -> dict[str, Any]:
    """The parts of one system by name, in the order of `PARTS`.

    Args:
        wanted: the parts to build; a rival needs some of them only (`parts_of`).
    """
    parts: dict[str, Any] = {}
    for name in PARTS:
        if name not in config:
            raise ConfigError(f"parts.{name} is missing; a system needs {list(PARTS)}")
        if name in wanted:
            parts[name] = make(section(config[name]), {**world.resources(), **parts})
    return parts


def parts_of(system: DictConfig, parts: DictConfig) -> set[str]:
    """The parts that a system asks for by name, and those that these ask for in turn."""
    found: set[str] = set()
    asking: list[DictConfig] = [system]
    while asking:
        new = _asked(asking.pop()) & set(PARTS) - found
        found |= new
        asking += [parts[name] for name in new if name in parts]
    # Algorithm 1 takes all of them: what no other asks for is still checked, trained and saved.
    return set(PARTS) if "search" in found else found


def _asked(config: DictConfig) -> set[str]:
    """The parameters of a config's target; empty where it has none, which building it will tell."""
    try:
        return set(inspect.signature(get_class(str(config.get("_target_")))).parameters)
    except Exception:  # Hydra raises whatever the import raised
        return set()


def asks_model(part: DictConfig) -> bool:
    """Whether a part is a prompted one."""
    return "chat" in _asked(part)


def without_prompts(config: DictConfig) -> DictConfig:
    """A rival's config with the fixed part in place of each prompted one that it uses; VisPath's as it is.

    Prompted parts are steps of VisPath. A rival's method has none of them, and what they ask inside of its
    tools would stand on no question's bill.
    """
    used = parts_of(config.system, config.parts)
    if "search" in used:
        return config
    changed = config.copy()
    for name in sorted(used & set(config.parts)):
        if asks_model(config.parts[name]):
            changed.parts[name] = OmegaConf.load(conf_dir() / "parts" / name / "fixed.yaml")
    return changed


def make_system(config: DictConfig, world: World, parts: Mapping[str, Any]) -> System:
    """The system that answers with these parts."""
    system: System = make(section(config), {**world.resources(), **parts})
    return system


def section(node: DictConfig) -> dict[str, Any]:
    """A config node as resolved plain containers.

    Raises:
        ConfigError: no mapping, or a value that must be set and is not; names its key.
    """
    if not isinstance(node, DictConfig):
        raise ConfigError(f"found {node!r} in the config, expected a mapping with a _target_")
    try:
        container = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
    except MissingMandatoryValue as error:
        key = str(error).split(":")[-1].strip().splitlines()[0]
        raise ConfigError(f"{key} is not set: say {key}=VALUE") from error
    except OmegaConfBaseException as error:
        if isinstance(error, InterpolationToMissingValueError):  # A value that another one refers to.
            key = first_line(error).split(":")[-1].strip()
            raise ConfigError(f"{key} is not set: say {key}=VALUE") from error
        raise ConfigError(f"the config cannot be resolved: {first_line(error)}") from error
    assert isinstance(container, dict)
    return {str(key): value for key, value in container.items()}
