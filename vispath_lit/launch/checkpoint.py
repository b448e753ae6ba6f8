"""What a checkpoint holds beside the weights, and the checks before its weights are used."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
import xxhash
from torch import Tensor, nn

import vispath_lit
from vispath_lit.errors import CheckpointError
from vispath_lit.launch.config import SYSTEM_KEYS
from vispath_lit.launch.parts import World
from vispath_lit.launch.values import first_line
from vispath_lit.models.model import LearnedParts
from vispath_lit.whole import whole_file

KEY = "vispath_lit"
ABLATED = "ablation.json"  # In the folder of a run that lacks something on purpose.
FINGERPRINTS = ("graph", "text_encoder", "image_encoder")
# All that reading a cut, foreign or hostile file was seen to raise.
DAMAGE = (
    RuntimeError,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    ArithmeticError,
    TypeError,
    AttributeError,
    AssertionError,
    struct.error,
    zipfile.BadZipFile,
)


class Provenance(pl.Callback):
    """Writes into each checkpoint what its weights were trained on: config, graph and encoders."""

    def __init__(self, config: dict[str, Any], world: World) -> None:
        self.content = origin(config, world)

    def on_save_checkpoint(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        checkpoint[KEY] = self.content


def origin(config: dict[str, Any], world: World) -> dict[str, Any]:
    """What a checkpoint says about its weights."""
    return {
        "version": vispath_lit.__version__,
        "config": config,
        "fingerprints": fingerprints(world),
        "store": str(world.graph.path.resolve()),
    }


def fingerprints(world: World) -> dict[str, str]:
    """Content fingerprints of graph and encoders."""
    return {
        "graph": world.graph.fingerprint,
        "text_encoder": world.text_encoder.fingerprint,
        "image_encoder": world.image_encoder.fingerprint,
    }


def resolve(ckpt_path: str | Path) -> Path:
    """`best` and `last` are the newest such checkpoint under `outputs`; anything else is a path.

    A killed run has a last one too; runs without training have none and are passed over, and so are systems
    that `vispath ablate` trained without something.

    Raises:
        CheckpointError: no run has one.
    """
    if str(ckpt_path) not in ("best", "last"):
        return Path(ckpt_path).expanduser()
    found = [
        file
        for file in Path("outputs").glob(f"**/checkpoints/{ckpt_path}.ckpt")
        if file.is_file() and not (file.parents[1] / ABLATED).exists()
    ]
    if not found:
        raise CheckpointError(f"no run under outputs has a {ckpt_path} checkpoint: name one by its path")
    return max(found, key=lambda file: (file.stat().st_mtime_ns, str(file)))


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """The checkpoint's content, read without executing anything in it.

    Raises:
        CheckpointError: no such file, a damaged one, or one that this project did not write.
    """
    file = Path(path).expanduser()
    if not file.is_file():
        raise CheckpointError(f"no checkpoint at {file}; a training run keeps its own under checkpoints/")
    try:
        with zipfile.ZipFile(file) as archive:  # torch itself takes altered bytes for weights
            altered = archive.testzip()
        if altered:
            raise zipfile.BadZipFile(f"the bytes of {altered} are not those that were written")
        content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"{file} holds more than tensors and plain values, which could run code; it was not opened"
        ) from error
    except DAMAGE as error:
        raise CheckpointError(f"{file} is damaged or not a checkpoint: {first_line(error)}") from error
    if not isinstance(content, dict) or KEY not in content or "state_dict" not in content:
        raise CheckpointError(f"{file} is a checkpoint, but not of VisPath-Lit: it has no {KEY!r} entry")
    if wrong := _misshapen(content):
        raise CheckpointError(f"{file} is not as training writes it: {wrong}; use another checkpoint")
    return content


def _misshapen(content: dict[str, Any]) -> str:
    """What in a checkpoint has not the shape that `Provenance` and Lightning give it; empty if all has."""
    own, state = content[KEY], content["state_dict"]
    if not isinstance(own, dict):
        return f"{KEY!r} is no mapping"
    for key, kind in (("config", dict), ("fingerprints", dict), ("store", str)):
        if not isinstance(own.get(key), kind):
            return f"{KEY}.{key} is missing or no {kind.__name__}"
    for key in FINGERPRINTS:
        if not isinstance(own["fingerprints"].get(key), str):
            return f"{KEY}.fingerprints.{key} is missing"
    if not isinstance(state, dict):
        return "state_dict is no mapping"
    for name, value in state.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            return f"state_dict holds {name!r}, which is no named tensor"
        if value.is_floating_point() and not bool(value.isfinite().all()):
            return f"the weights {name} hold numbers that are not finite"
    return ""


def check_resumable(content: dict[str, Any]) -> None:
    """Refuses to go on from a checkpoint that has weights but not the state of their training.

    Raises:
        CheckpointError: says what is missing and how to start from the weights alone.
    """
    kinds = {"epoch": int, "global_step": int, "loops": dict, "optimizer_states": list, "lr_schedulers": list}
    wrong = [key for key, kind in kinds.items() if not isinstance(content.get(key), kind)]
    place = content.get("QuestionDataModule")
    if not isinstance(place, dict) or not all(type(place.get(key)) is int for key in ("epoch", "done")):
        wrong.append("QuestionDataModule")
    for key in ("optimizer_states", "lr_schedulers"):
        if key not in wrong and not (content[key] and all(isinstance(state, dict) for state in content[key])):
            wrong.append(key)
    if wrong:
        raise CheckpointError(
            f"the checkpoint cannot be resumed, its {', '.join(wrong)} is missing or damaged: "
            "say transfer=true to start from its weights alone"
        )


def trained_store(content: dict[str, Any]) -> Path:
    """The store that the checkpoint was trained on, for answering from any folder.

    Raises:
        CheckpointError: it is gone.
    """
    store = Path(content[KEY]["store"])
    if not store.is_dir():
        raise CheckpointError(
            f"the graph store {store} of the checkpoint is gone: say where the graph is (--graph)"
        )
    return store


def check_fit(content: dict[str, Any], world: World, transfer: bool) -> None:
    """Refuses weights trained with another encoder, or on another graph unless `transfer`.

    Raises:
        CheckpointError: says which fingerprint differs and what to do.
    """
    trained, here = content[KEY]["fingerprints"], fingerprints(world)
    if trained["text_encoder"] != here["text_encoder"]:
        raise CheckpointError(
            f"the checkpoint was trained with text encoder {trained['text_encoder']}, this run has "
            f"{here['text_encoder']}: use the checkpoint's own text_encoder"
        )
    if trained["graph"] != here["graph"] and not transfer:
        raise CheckpointError(
            f"the checkpoint was trained on graph {trained['graph']}, this run has {here['graph']}: "
            "say transfer=true (--transfer) to use it on another graph"
        )


def weights_fingerprint(content: dict[str, Any]) -> str:
    """Hash of the weights alone: the rest of a checkpoint holds folders and times."""
    digest = xxhash.xxh3_128()
    for name, value in sorted(content["state_dict"].items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}\n".encode())
        digest.update(
            value.contiguous().view(torch.uint8).numpy().tobytes()
            if value.ndim
            else str(value.item()).encode()
        )
    return digest.hexdigest()


def of_parts(state: dict[str, Tensor], names: Collection[str]) -> dict[str, Tensor]:
    """The part of a checkpoint's state that belongs to some parts of the system, or to the system itself."""
    return {
        key: value
        for key, value in state.items()
        if not key.startswith("parts.") or key.split(".", 2)[1] in names
    }


def decided_keys(content: dict[str, Any]) -> tuple[str, ...]:
    """What of a config a checkpoint decides about: the system too where it has weights of its own."""
    own = any(key.startswith("system.") for key in content["state_dict"])
    return (*SYSTEM_KEYS, "system") if own else SYSTEM_KEYS


def write_checkpoint(file: Path, content: dict[str, Any]) -> None:
    """Writes a checkpoint, whole or not at all."""
    with whole_file(file) as partial:
        torch.save(content, partial)


def save_weights(learned: LearnedParts, file: Path) -> None:
    """Writes the weights of the parts into a checkpoint in place of those that it holds."""
    content = read_checkpoint(file)
    state, names = learned.state_dict(), learned.trained_names()
    content["state_dict"] = {f"parts.{name}": state[name] for name in state if name in names}
    write_checkpoint(file, content)


def load_weights(module: nn.Module, state: dict[str, Tensor], prefix: str) -> None:
    """Loads the part of `state` below `prefix` into `module`, exactly.

    Raises:
        CheckpointError: missing, unexpected or misshapen weights.
    """
    own = {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}
    try:
        module.load_state_dict(own, strict=True)
    except RuntimeError as error:
        hint = f"{error}"
        if any(".of_facts." in key for key in own) and "size mismatch" in hint:
            hint = "it was trained with parts/neighbourhood=facts, whose weights fit its own graph alone"
        raise CheckpointError(f"the checkpoint does not fit the configured parts: {hint}") from error
