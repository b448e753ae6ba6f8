"""Distils the composers of a graph from exact text vectors, and measures them on entities they never saw."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor, nn

from vispath_lit.encoders.batching import track_if_slow
from vispath_lit.encoders.precision import choose_dtype
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import edge_texts, verbalize
from vispath_lit.models.texts.composer_files import VERSION, Composers, load_composers, save_composers
from vispath_lit.models.texts.composers import ChainComposer, EdgeComposer
from vispath_lit.models.texts.labels import LabelVectors
from vispath_lit.models.texts.samples import WalkSampler, random_starts, sample_pairs
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Paths

log = logging.getLogger(__name__)
MIN_STEPS = 60
AMPLE = 10_000  # texts (or walks) that bear the full learning rate


@dataclass(frozen=True, slots=True)
class DistillSettings:
    """How composers are trained.

    Attributes:
        edges: edge texts in the sample.
        walks: random walks in the sample, at most two a triple; each gives one chain text a hop.
        hops: longest chain.
        held_out: share of the entities that training never sees.
        edge_steps, edge_batch, chain_steps, chain_batch: optimiser steps and texts (or walks) a step.
    """

    seed: int = 0
    edges: int = 40_000
    walks: int = 10_000
    hops: int = 4
    held_out: float = 0.05
    edge_steps: int = 1200
    edge_batch: int = 512
    edge_rate: float = 2e-3
    chain_steps: int = 800
    chain_batch: int = 256
    chain_rate: float = 4e-3

    def __post_init__(self) -> None:
        for name in ("edges", "walks", "hops", "edge_steps", "edge_batch", "chain_steps", "chain_batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"distillation {name} is {getattr(self, name)}; expected at least 1")
        if not 0 < self.held_out < 1:
            raise ConfigError(f"distillation held_out is {self.held_out}; expected between 0 and 1")


def composers_for(
    graph: KnowledgeGraph,
    text_encoder: TextEncoder,
    cache_dir: Path,
    composer: str,
    settings: DistillSettings,
) -> Composers:
    """The composers at the path `composer`, or with `auto` those of this graph, distilled where missing.

    Raises:
        CheckpointError: a file that is damaged, or made for another text encoder.
    """
    if composer != "auto":
        return load_composers(Path(composer), text_encoder)
    key = json.dumps([VERSION, graph.fingerprint, text_encoder.fingerprint, asdict(settings)])
    file = (
        cache_dir / "composers" / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.safetensors"
    )
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of several processes that need it (one a device, say) one works and the others wait for its file.
        with FileLock(file.with_suffix(".lock")):
            if not file.exists():
                log.info("distilling text composers for this graph, once; they are kept in %s", file)
                distill(graph, text_encoder, file, settings)
    return load_composers(file, text_encoder)


def distill(
    graph: KnowledgeGraph, text_encoder: TextEncoder, out: Path, settings: DistillSettings
) -> dict[str, Any]:
    """Trains both composers, writes them to `out` and gives the report that is kept with them."""
    labels = LabelVectors(graph, text_encoder)
    rng = np.random.default_rng(settings.seed)
    held_out = torch.from_numpy(rng.random(graph.num_entities) < settings.held_out)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        edge, chain = EdgeComposer(text_encoder.dim), ChainComposer(text_encoder.dim)
    report: dict[str, Any] = {"graph": graph.fingerprint, "settings": asdict(settings)}
    report["edges"] = _distil_edges(graph, text_encoder, labels, edge, held_out, settings)
    report["chains"] = _distil_chains(graph, text_encoder, labels, chain, held_out, settings)
    save_composers(out, edge, chain, text_encoder.fingerprint, report)
    log.info(
        "composers: cosine to exact texts on entities they never saw %s (edges), %s (chains)",
        report["edges"]["cosine"],
        report["chains"]["cosine"],
    )
    return report


def _distil_edges(
    graph: KnowledgeGraph,
    text_encoder: TextEncoder,
    labels: LabelVectors,
    composer: EdgeComposer,
    held_out: Tensor,
    settings: DistillSettings,
) -> dict[str, Any]:
    """Trains the edge composer on edges whose tail is not held out."""
    pairs = sample_pairs(graph, settings.edges, settings.seed)
    texts = text_encoder.encode(edge_texts(graph, *pairs))
    relation, tail = (torch.from_numpy(part) for part in pairs)
    relations, tails = labels.relations[relation], labels.entities(tail)
    unseen = held_out[tail]

    def loss(rows: Tensor) -> Tensor:
        vectors: Tensor = composer(relations[rows], tails[rows])
        return 1 - (vectors * texts[rows]).sum(1).mean()

    train = _rows(~unseen)
    _fit(composer, loss, train, settings.edge_steps, settings.edge_batch, settings.edge_rate, settings.seed)
    with torch.no_grad():
        cosine = (composer(relations[unseen], tails[unseen]) * texts[unseen]).sum(1)
    return {"cosine": _mean(cosine), "texts": len(texts), "unseen": len(cosine)}


def _distil_chains(
    graph: KnowledgeGraph,
    text_encoder: TextEncoder,
    labels: LabelVectors,
    composer: ChainComposer,
    held_out: Tensor,
    settings: DistillSettings,
) -> dict[str, Any]:
    """Trains the chain composer on walks without a held-out entity; measured on those that start at one."""
    rng = np.random.default_rng(settings.seed + 1)
    starts = random_starts(graph, min(settings.walks, 2 * graph.num_triples), rng)
    walks = WalkSampler(graph, settings.seed + 1).walks(starts, settings.hops)
    texts = torch.stack([_chain_texts(graph, text_encoder, walks, d + 1) for d in range(settings.hops)], 1)
    relations = labels.relations[walks.relations]
    entities = labels.entities(walks.entities.flatten()).view(*walks.entities.shape, -1)
    met = held_out[walks.entities]

    def cosine(rows: Tensor) -> Tensor:
        vectors: Tensor = composer(entities[rows], relations[rows])
        return (vectors * texts[rows]).sum(2)

    train = _rows(~met.any(1))
    _fit(
        composer,
        lambda rows: 1 - cosine(rows).mean(),
        train,
        settings.chain_steps,
        settings.chain_batch,
        settings.chain_rate,
        settings.seed,
    )
    unseen = torch.nonzero(met[:, 0])[:, 0]
    with torch.no_grad():
        found = cosine(unseen)
    by_hop = {str(d + 1): _mean(found[:, d]) for d in range(settings.hops)}
    return {"cosine": _mean(found), "by_hop": by_hop, "walks": len(walks), "unseen": len(unseen)}


def _chain_texts(graph: KnowledgeGraph, text_encoder: TextEncoder, walks: Paths, hops: int) -> Tensor:
    """`[n, d]` exact vectors of the first `hops` hops of each walk."""
    part = Paths(walks.entities[:, : hops + 1], walks.relations[:, :hops], walks.state, walks.scores)
    return text_encoder.encode(verbalize(graph, part))


def _fit(
    model: nn.Module,
    loss: Callable[[Tensor], Tensor],
    train: Tensor,
    steps: int,
    batch: int,
    rate: float,
    seed: int,
) -> None:
    """AdamW with a short warm-up and a linear decay.

    The number of steps is fixed, so that a seed fixes the result. A small sample takes fewer and smaller
    ones: it says little about new texts, for which the mean of the parts, where training starts, is a fair
    guess.
    """
    rate *= min(1.0, (len(train) / AMPLE) ** 0.5)
    batch = min(batch, len(train))
    steps = min(steps, max(MIN_STEPS, 40 * len(train) // batch))
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    warm = min(50, max(1, steps // 10))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / warm, (steps - step) / max(1, steps - warm))
    )
    generator = torch.Generator().manual_seed(seed)
    half = choose_dtype("auto") == torch.bfloat16
    for _ in track_if_slow(range(steps), f"distilling {type(model).__name__}"):
        rows = train[torch.randint(len(train), (batch,), generator=generator)]
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            value = loss(rows)
        optimiser.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    model.eval().requires_grad_(False)


def _rows(mask: Tensor) -> Tensor:
    """Where `mask` holds; everywhere in a graph too small to hold entities out."""
    return torch.nonzero(mask if mask.any() else torch.ones_like(mask))[:, 0]


def _mean(values: Tensor) -> float | None:
    """None where there is nothing to measure on."""
    return round(float(values.mean()), 4) if values.numel() else None
