"""The runs that each of the paper's tables needs, as overrides of `conf/eval.yaml`."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence

from hydra.utils import get_class
from omegaconf import DictConfig, OmegaConf

from vispath_lit.errors import ConfigError
from vispath_lit.evaluation.paper import TEXT_ONLY
from vispath_lit.launch.config import conf_dir, load_config
from vispath_lit.launch.evaluate import configured
from vispath_lit.launch.parts import asks_model, parts_of
from vispath_lit.progress import tell

# A plan: run name to overrides of conf/eval.yaml.
Plan = dict[str, list[str]]
BEAM = ("parts.search.m1=15,30,60", "parts.search.m3=1,3,5", "parts.search.d_max=2,3,4")
VISUAL_INTENT = "without visual intent"
WITHOUT = {
    "without graph-aware validation": ["parts.search.validation=false"],
    VISUAL_INTENT: ["parts/intent=fixed"],
    "without chain pruning": ["parts.search.chain_pruning=false"],
    "without evidence checking": ["parts.search.evidence_checking=false"],
}
AS_IN_PAPER = ("parts=prompted", "experiment=paper")
BLIND = ("NoBackbone", "MiniLMUpper")  # backbones that read words alone
OWN_PARTS = ("parts", "ckpt_path", "experiment")  # whoever sets one of them has chosen VisPath's parts


def plan(kind: str, overrides: Sequence[str], vary: Sequence[str]) -> Plan:
    """The runs that a table needs: the first is the one that the others are compared with.

    Raises:
        ConfigError: settings that cannot be varied, or models that no part asks.
    """
    if kind == "backbones" and not vary:
        raise ConfigError("say which models: --vary chat.model=ONE,OTHER, or name finished runs")
    found = _runs(kind, overrides, vary)
    if kind == "backbones":
        _check_asked(found, vary)
    return {name: asked_once(asked) for name, asked in found.items()}


def _runs(kind: str, overrides: Sequence[str], vary: Sequence[str]) -> Plan:
    base = as_in_paper(overrides)
    if kind == "beam":
        return _one_at_a_time(base, vary or BEAM)
    if vary:
        return _combinations(overrides, vary)
    if kind == "grounding":
        return {f"validation {v}": [*base, f"parts.search.validation={v}"] for v in ("false", "true")}
    return _ablations(base) if kind == "ablation" else _systems(overrides)


def asked_once(overrides: Sequence[str]) -> list[str]:
    """A run's overrides; where calls cost something it is tested under the protocol that the tables show."""
    chosen = _chosen(overrides)
    if not _talks(chosen) or "given" in chosen:
        return list(overrides)
    text_only = _class(chosen.get("system", "vispath")) in TEXT_ONLY
    return [*overrides, "given=[start]" if text_only else "given=[nothing]"]


def _class(system: str) -> str:
    """The name of the class of a choice of conf/system; empty where there is no such choice."""
    file = conf_dir() / "system" / f"{system}.yaml"
    target = OmegaConf.select(OmegaConf.load(file), "_target_") if file.is_file() else ""
    return str(target).rpartition(".")[2]


def as_in_paper(overrides: Sequence[str]) -> list[str]:
    """A run's overrides; VisPath with a language model gets the paper's parts unless the user chose others.

    The defaults of `conf/eval.yaml` are fixed parts: they would never ask the model that the user named.
    """
    chosen = _chosen(overrides)
    own = any(key in chosen for key in OWN_PARTS)
    if own or chosen.get("system", "vispath") != "vispath" or not _talks(chosen):
        return list(overrides)
    return [*AS_IN_PAPER, *overrides]


def _chosen(overrides: Sequence[str]) -> dict[str, str]:
    """The last value that each key is given."""
    pairs = [one.partition("=") for one in overrides]
    return {key.lstrip("+"): value for key, _, value in pairs}


def _talks(chosen: Mapping[str, str]) -> bool:
    return chosen.get("chat", "none") not in ("none", "null", "")


def _one_at_a_time(base: list[str], vary: Sequence[str]) -> Plan:
    """The defaults, and a run for every other value of each setting."""
    default = load_config("eval", base)
    singles = [
        [(key, value)]
        for key, values in map(_values, vary)
        for value in values
        if str(OmegaConf.select(default, key)) != value
    ]
    return {"default": base} | {_named(pairs): [*base, *_settings(pairs)] for pairs in singles}


def _combinations(overrides: Sequence[str], vary: Sequence[str]) -> Plan:
    """A run for each combination of values; a varied `chat` may be what gives a run its language model."""
    pairs = [[(key, value) for value in values] for key, values in map(_values, vary)]
    return {_named(one): as_in_paper([*overrides, *_settings(one)]) for one in itertools.product(*pairs)}


def _check_asked(found: Plan, vary: Sequence[str]) -> None:
    """Refuses to compare language models that nothing asks: all rows would be one and the same.

    Raises:
        ConfigError: no back end, or a system of which no part is prompted.
    """
    keys = [key for key in (_values(one)[0] for one in vary) if key.split(".")[0] == "chat"]
    for overrides in found.values() if keys else ():
        if not _talks(_chosen(overrides)):
            raise ConfigError(f"{keys[0]} is varied, but no back end is chosen: say --set chat=openai")
        config = _config(overrides)
        if config.chat.get("blind") and all(key.startswith("chat.vision_") for key in keys):
            raise ConfigError(f"nothing depends on {keys[0]}: pictures are left out (chat.blind)")
        if not _asks(config):
            raise ConfigError(
                f"nothing depends on {keys[0]}: no part of the system is prompted; say --set parts=prompted, "
                "or leave out parts, ckpt_path and experiment"
            )


def _asks(config: DictConfig) -> bool:
    """Whether the system or one of its parts asks a language model."""
    used = parts_of(config.system, config.parts)
    own = "search" not in used and asks_model(config.system)  # VisPath's chat is for the bill of its parts
    return own or any(asks_model(config.parts[name]) for name in used)


def _config(overrides: Sequence[str]) -> DictConfig:
    """The config of a run, with its checkpoint's parts."""
    return configured(load_config("eval", overrides), overrides)[0]


def _ablations(base: list[str]) -> Plan:
    """The full system, and it without each thing that it has.

    What it lacks already is left out and told: such a row would show the full system under another name.
    """
    full = _config(base)
    found = {"full system": base}
    for name, without in WITHOUT.items():
        changed = [*base, *without]
        if name == VISUAL_INTENT:  # settings of the intent that goes would fit no other one
            changed = [one for one in changed if not one.lstrip("+~").startswith("parts.intent.")]
        blind = name == VISUAL_INTENT and not _sees(full)
        if blind or _config(changed).parts == full.parts:
            tell(f"{name}: left out, as the full system has none")
        else:
            found[name] = changed
    return found


def _sees(config: DictConfig) -> bool:
    """Whether the intent looks at the picture: a prompted one, picture tokens, or a backbone that sees."""
    intent = config.parts.intent
    backbone = str(config.parts.vlm.get("_target_")).rpartition(".")[2]
    prompted = asks_model(intent) and not (config.chat or {}).get("blind")
    return prompted or bool(intent.get("image_tokens")) or backbone not in BLIND


def _systems(base: Sequence[str]) -> Plan:
    """The systems of conf/system that can run so: prompted ones with a language model, trained ones never.

    A system with weights of its own needs its own checkpoint: its run is named with the others.
    """
    talks = _talks(_chosen(base))
    found: Plan = {}
    for file in sorted((conf_dir() / "system").glob("*.yaml")):
        target = get_class(str(OmegaConf.select(OmegaConf.load(file), "_target_")))
        chat = inspect.signature(target).parameters.get("chat")
        silent = chat is None or chat.default is not inspect.Parameter.empty
        if not hasattr(target, "fit") and (talks or silent):
            found[file.stem] = as_in_paper([*base, f"system={file.stem}"])
    return found


def _values(text: str) -> tuple[str, list[str]]:
    key, _, values = text.partition("=")
    found = [value for value in values.split(",") if value]
    if not key or len(found) < 1:
        raise ConfigError(f"--vary {text!r}: expected KEY=VALUE,VALUE")
    return key, found


def _settings(pairs: Sequence[tuple[str, str]]) -> list[str]:
    return [f"{key}={value}" for key, value in pairs]


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in pairs)
