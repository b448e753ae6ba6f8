"""Trains a grounder's metric: a view of a reference image should be nearest to the images of its entity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from vispath_lit.errors import ConfigError, at_least
from vispath_lit.models.grounders.alignment import aligned_cosines, best_poses
from vispath_lit.models.grounders.learned import BLOCK, LearnedGrounder, LocalMetric
from vispath_lit.progress import track

SAMPLE = 1024  # Pictures that the channels' covariance is taken from.
SHRINK = 0.1  # Share of the mean variance that is added to each before the channels are whitened.


@dataclass(frozen=True, slots=True)
class ContrastSettings:
    """How the metric is trained.

    Attributes:
        epochs: passes over the views.
        batch: views a step.
        others: pictures of other entities that a view meets, the likeliest ones.
        lr: highest learning rate of AdamW; it falls as a cosine.
        temperature: that cosines are divided by.
        weight: w of `LearnedGrounder` once the metric is trained.
    """

    epochs: int = 4
    batch: int = 32
    others: int = 7
    lr: float = 2e-3
    temperature: float = 0.03
    weight: float = 4.0

    def __post_init__(self) -> None:
        at_least(1, "training.grounder", batch=self.batch, others=self.others)
        at_least(0, "training.grounder", epochs=self.epochs)
        for key in ("lr", "temperature", "weight"):
            if not 0 < getattr(self, key) < math.inf:
                raise ConfigError(f"training.grounder.{key} is {getattr(self, key)}; expected more than 0")


@dataclass(frozen=True, slots=True, eq=False)
class Lists:
    """V views, each beside k pictures under the pose that lays them over it.

    Attributes:
        views: `[V]` rows of the table of views.
        pictures: `[V, k]` rows of the table of reference images.
        poses: `[V, k, 5]`.
        same: `[V, k]` bool, whether a picture shows the view's entity; at least one does.
    """

    views: Tensor
    pictures: Tensor
    poses: Tensor
    same: Tensor


def contrastive_loss(cosines: Tensor, same: Tensor, temperature: float) -> Tensor:
    """InfoNCE with several positives: the mean of `-log sum_{i in same} softmax(cos / t)_i`.

    Args:
        cosines: `[B, k]` of views and pictures.
        same: `[B, k]` bool; at least one of each row is True.

    Returns:
        Scalar.
    """
    logits = cosines / temperature
    accepted = logits.masked_fill(~same, -torch.inf)
    return (logits.logsumexp(dim=1) - accepted.logsumexp(dim=1)).mean()


def train_grounder(grounder: LearnedGrounder, settings: ContrastSettings, seed: int) -> None:
    """Trains the metric on views of the graph's own pictures: no question and no label is looked at.

    A graph whose readable pictures show fewer than two entities leaves the weights as they are. They are the
    same for the same seed, and frozen afterwards: the walk along gold paths does not change them.
    """
    grounder.requires_grad_(False)
    if len(np.unique(grounder.near.graph.image_entity)) < 2:
        return
    features = grounder.near.fine_references.vectors
    readable = np.flatnonzero(features.any(axis=1))
    if len(np.unique(grounder.near.graph.image_entity[readable])) < 2:
        return
    rng = torch.Generator().manual_seed(seed)
    if float(grounder.weight) == 0:  # not one that was trained before
        sample = np.sort(np.random.default_rng(seed).permutation(readable)[:SAMPLE])
        whiten(grounder.metric, torch.from_numpy(features[sample]))
    lists = _lists(grounder, settings)
    grounder.metric.requires_grad_(True)
    _fit(grounder, lists, settings, rng)
    grounder.weight.fill_(settings.weight)
    grounder.requires_grad_(False)


@torch.no_grad()
def whiten(metric: LocalMetric, features: Tensor) -> None:
    """Sets each level's mix so that its channels have zero mean and about equal variance over all cells.

    Args:
        features: `[n, d]` fine features of some pictures.
    """
    for level, mix in zip(metric.raw(features), metric.mixes, strict=True):
        assert isinstance(mix, nn.Conv2d)
        assert mix.bias is not None
        cells = level.movedim(1, 3).flatten(0, 2).double()
        mean = cells.mean(dim=0)
        variances, axes = torch.linalg.eigh((cells - mean).T @ (cells - mean) / len(cells))
        scale = (variances + SHRINK * variances.mean() + 1e-9).rsqrt()
        matrix = axes @ torch.diag(scale) @ axes.T
        mix.weight.copy_(matrix[:, :, None, None])
        mix.bias.copy_(-matrix @ mean)


@torch.no_grad()
def _lists(grounder: LearnedGrounder, settings: ContrastSettings) -> Lists:
    """Each readable view beside the likeliest pictures of other entities and one of its own."""
    near, metric = grounder.near, grounder.metric
    entity = torch.from_numpy(np.array(near.graph.image_entity))
    views = torch.from_numpy(np.flatnonzero(grounder.views.vectors.any(axis=1)))
    shown = torch.from_numpy(grounder.views.pictures)[views]
    count = min(settings.others, int((entity != entity[0]).sum()))
    best = torch.full((len(views), 0), 0.0)
    found = torch.zeros((len(views), 0), dtype=torch.long)
    asked = torch.cat(
        [
            metric.flat(metric.maps(torch.from_numpy(grounder.views.vectors[rows.numpy()])))
            for rows in torch.split(views, BLOCK)
        ]
    )
    for low in track(range(0, len(entity), BLOCK), "looking for likely mistakes"):
        features = torch.from_numpy(near.fine_references.vectors[low : low + BLOCK].copy())
        scores = asked @ metric.flat(metric.maps(features)).T
        rows = torch.arange(low, low + len(features))
        scores.masked_fill_(~features.any(dim=1) | (entity[rows] == entity[shown][:, None]), -torch.inf)
        scores, rows = torch.cat([best, scores], 1), torch.cat([found, rows.expand(len(views), -1)], 1)
        best, order = scores.topk(min(count, scores.shape[1]), dim=1)
        found = rows.gather(1, order)
    pictures = torch.cat([shown[:, None], found], dim=1)
    poses = []
    for i in track(range(0, len(views), settings.batch), "laying pictures over views"):
        seen, maps = _maps(grounder, views[i : i + settings.batch], pictures[i : i + settings.batch])
        poses.append(best_poses(seen[0], maps[0], grounder.steps))
    same = entity[pictures] == entity[shown][:, None]
    return Lists(views, pictures, torch.cat(poses).reshape(*pictures.shape, 5), same)


def _maps(grounder: LearnedGrounder, views: Tensor, pictures: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    """Mixed maps of views, each repeated for its pictures, and of the pictures: `[B k, c, s, s]` a level."""
    metric, k = grounder.metric, pictures.shape[1]
    seen = metric.maps(torch.from_numpy(grounder.views.vectors[views.numpy()]))
    shown = torch.from_numpy(grounder.near.fine_references.vectors[pictures.flatten().numpy()])
    return [level.repeat_interleave(k, dim=0) for level in seen], metric.maps(shown)


def _fit(grounder: LearnedGrounder, lists: Lists, settings: ContrastSettings, rng: torch.Generator) -> None:
    """Listwise training with the poses as they were found."""
    optimizer = AdamW(grounder.metric.parameters(), lr=settings.lr, weight_decay=0.0)
    batches = [
        part
        for _ in range(settings.epochs)
        for part in torch.split(torch.randperm(len(lists.views), generator=rng), settings.batch)
    ]
    for step, part in enumerate(track(batches, "training the grounder")):
        optimizer.param_groups[0]["lr"] = settings.lr * 0.5 * (1 + math.cos(math.pi * step / len(batches)))
        seen, maps = _maps(grounder, lists.views[part], lists.pictures[part])
        cosines = aligned_cosines(seen, maps, lists.poses[part].flatten(0, 1))
        near = grounder.metric.weigh(cosines).reshape(len(part), -1)
        loss = contrastive_loss(near, lists.same[part], settings.temperature)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
