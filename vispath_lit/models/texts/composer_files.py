"""Composers on disk: safetensors with their widths and their report as JSON."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from vispath_lit.errors import CheckpointError
from vispath_lit.models.texts.composers import ChainComposer, EdgeComposer
from vispath_lit.protocols import TextEncoder
from vispath_lit.whole import whole_file

VERSION = 1  # of the composers' shapes and of the way they are trained
MAX_WIDTH = 8192
# Whatever a file of unknown origin can raise; its JSON may be deep, or hold numbers without end.
UNREADABLE = (OSError, SafetensorError, LookupError, ArithmeticError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Composers:
    """Both composers, ready for use, with what was measured when they were distilled."""

    edge: EdgeComposer
    chain: ChainComposer
    report: dict[str, Any]
    fingerprint: str


def save_composers(
    file: Path, edge: EdgeComposer, chain: ChainComposer, encoder: str, report: dict[str, Any]
) -> None:
    """Writes both composers as safetensors."""
    tensors = {f"edge.{name}": value.contiguous() for name, value in edge.state_dict().items()}
    tensors |= {f"chain.{name}": value.contiguous() for name, value in chain.state_dict().items()}
    about = {
        "version": VERSION,
        "encoder": encoder,
        "dim": edge.dim,
        "edge_width": edge.width,
        "chain_width": chain.width,
        "report": report,
    }
    with whole_file(file) as partial:
        save_file(tensors, partial, {"composers": json.dumps(about, sort_keys=True)})


def load_composers(file: Path, text_encoder: TextEncoder) -> Composers:
    """Reads what `save_composers` wrote.

    Raises:
        CheckpointError: the file is missing, damaged, or made for another text encoder.
    """
    try:
        with safe_open(file, framework="pt") as stored:
            about = json.loads((stored.metadata() or {})["composers"])
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
        version, encoder, dim = about["version"], about["encoder"], int(about["dim"])
        widths = int(about["edge_width"]), int(about["chain_width"])
    except UNREADABLE as error:
        raise CheckpointError(
            f"{file}: not a composer file ({error}); delete it or name another one"
        ) from error
    if version != VERSION or encoder != text_encoder.fingerprint or dim != text_encoder.dim:
        raise CheckpointError(
            f"{file}: version {version} for text encoder {encoder}, expected version {VERSION} for "
            f"{text_encoder.fingerprint}; use the text encoder it was distilled from, or composer=auto"
        )
    if not all(0 < width <= MAX_WIDTH for width in widths):
        raise CheckpointError(f"{file}: widths {widths}, expected 1 to {MAX_WIDTH}")
    edge, chain = EdgeComposer(dim, widths[0]), ChainComposer(dim, widths[1])
    try:
        for prefix, model in (("edge.", edge), ("chain.", chain)):
            own = {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
            model.load_state_dict(own)
            model.eval().requires_grad_(False)
    except RuntimeError as error:
        raise CheckpointError(f"{file}: weights of other shapes than it says ({error})") from error
    digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    return Composers(edge, chain, about["report"], digest)
