"""The fixed grounder with a trained metric of finer picture features, no part of it at the start."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from vispath_lit.data.views import ViewSettings
from vispath_lit.encoders.threads import side_by_side
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.alignment import TURNS, aligned_cosines, best_poses, turned_back
from vispath_lit.models.grounders.fixed import ImageOrName
from vispath_lit.models.grounders.name import NameGrounder
from vispath_lit.models.grounders.nearest_image import NearestImageGrounder
from vispath_lit.models.grounders.references import ReferenceImages
from vispath_lit.models.grounders.views import ReferenceViews
from vispath_lit.protocols import ImageEncoder
from vispath_lit.types import Analysis, Candidate, Query

BLOCK = 512  # Pictures whose fine features are taken into memory at once.


class LocalMetric(nn.Module):
    """How alike two pictures are, cell by cell: each level's channels are mixed, and levels weighed.

    Args:
        shapes: channels and cells a side of each level, as `encoders/fine.py` has them.
    """

    def __init__(self, shapes: Sequence[tuple[int, int]]) -> None:
        super().__init__()
        self.shapes = tuple(shapes)
        self.mixes = nn.ModuleList([nn.Conv2d(channels, channels, 1) for channels, _ in shapes])
        for mix in self.mixes:
            nn.init.dirac_(cast(nn.Conv2d, mix).weight)
            nn.init.zeros_(cast(Tensor, mix.bias))
        self.levels = nn.Parameter(torch.zeros(len(self.shapes)))

    def raw(self, features: Tensor) -> list[Tensor]:
        """`[n, c, s, s]` of each level, from `[n, d]` fine features."""
        sizes = [channels * cells**2 for channels, cells in self.shapes]
        parts = torch.split(features.to(self.levels), sizes, dim=1)
        return [
            part.reshape(-1, channels, cells, cells) * cells  # cells of about unit length
            for part, (channels, cells) in zip(parts, self.shapes, strict=True)
        ]

    def maps(self, features: Tensor) -> list[Tensor]:
        """The mixed maps `[n, c, s, s]` of each level."""
        return [mix(level) for mix, level in zip(self.mixes, self.raw(features), strict=True)]

    def weigh(self, cosines: Tensor) -> Tensor:
        """`[n]`: the mean of `[n, L]` cosines of the levels under their weights."""
        return (cosines * self.levels.softmax(0)).sum(dim=1)

    def flat(self, maps: Sequence[Tensor]) -> Tensor:
        """`[n, d]` unit rows of mixed maps; their product is the metric of two pictures as they lie."""
        shares = self.levels.softmax(0).sqrt()
        rows = [F.normalize(level.flatten(1), dim=1) for level in maps]
        return torch.cat([share * row for share, row in zip(shares, rows, strict=True)], dim=1)


class LearnedGrounder(nn.Module):
    """`ImageOrName` of the nearest picture by the fixed and a learned metric, and the names in the question.

    A picture I' scores `(cos(f(I), f(I')) + w m(g(I), T g(I'))) / (1 + w)`: f is the encoder, g its finer
    features (`encoders/fine.py`), m a trained `LocalMetric`, and T the small turn, stretch and shift that
    lays the reference image over the one asked about (`alignment.py`), for the `retrieve` best without T. w
    is 0 at the start, so that an untrained grounder is the fixed one; nothing belongs to one entity or graph.

    Args:
        retrieve: entities that the rough search by image passes on to the exact one.
        keep: candidates a question, K.
        steps: of the search for T; each costs some 3 milliseconds of a core a question.
        views: reference images whose new views the metric is trained on, at most; each costs some 100
            milliseconds of a core.

    Raises:
        ConfigError: an image encoder without finer features.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None = None,
        retrieve: int = 20,
        keep: int = 5,
        steps: int = 10,
        views: int = 1000,
    ) -> None:
        super().__init__()
        if steps < 0 or views < 1:
            raise ConfigError(f"grounder.steps is {steps} and views {views}; expected at least 0 and 1")
        if not hasattr(image_encoder, "fine"):
            raise ConfigError(
                f"{type(image_encoder).__name__} has no finer features, which the learned grounder needs; "
                "use parts/grounder=fixed"
            )
        self.metric = LocalMetric(image_encoder.fine.shapes)
        self.weight = nn.Parameter(torch.zeros(()))
        self.steps = steps
        self.near = NearestAligned(self, graph, image_encoder, cache_dir, retrieve, keep)
        self.views = ReferenceViews(graph, self.near.fine, cache_dir, ViewSettings(), views)
        self.grounder = ImageOrName(self.near, NameGrounder(graph, keep))
        # `train_grounder` alone moves the weights; the walk's optimiser never holds them, resumed or not.
        self.requires_grad_(False)

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return self.grounder.ground(queries, analyses)


class NearestAligned(NearestImageGrounder):
    """The nearest reference image by both metrics, once the learned one is trained."""

    def __init__(
        self,
        learned: LearnedGrounder,
        graph: KnowledgeGraph,
        image_encoder: ImageEncoder,
        cache_dir: Path | str | None,
        retrieve: int,
        keep: int,
    ) -> None:
        super().__init__(graph, image_encoder, cache_dir, retrieve, keep)
        self.learned = learned
        self.fine: ImageEncoder = cast(Any, image_encoder).fine
        self.fine_references = ReferenceImages(graph, self.fine, cache_dir)

    @torch.no_grad()
    def ranked(self, images: Sequence[Image]) -> list[list[tuple[int, float]]]:
        if float(self.learned.weight) == 0:
            return super().ranked(images)
        whole = self.image_encoder.encode(images).cpu().float()
        fine = self.fine.encode(images)
        shortlists = self.shortlist(whole, fine)

        def exact(row: int) -> list[tuple[int, float]]:
            pictures = shortlists[row]
            scores = self.pair_scores(whole[row], fine[row : row + 1], pictures).tolist()
            best: dict[int, float] = {}
            for entity, score in zip(self.graph.image_entity[pictures.numpy()].tolist(), scores, strict=True):
                best[entity] = max(best.get(entity, -torch.inf), score)
            return sorted(best.items(), key=lambda one: (-one[1], one[0]))

        return list(side_by_side(exact, range(len(images)), torch.get_num_threads()))

    def shortlist(self, whole: Tensor, fine: Tensor) -> Tensor:
        """`[S, k]` the pictures that score best before they are aligned, in the order of the graph."""
        metric, weight = self.learned.metric, self.learned.weight
        turned = zip(*map(turned_back, metric.maps(fine)), strict=True)
        asked = torch.cat([metric.flat(maps) for maps in turned])
        scores = torch.empty(len(whole), len(self.graph.image_entity))
        for low in range(0, scores.shape[1], BLOCK):
            rows = slice(low, low + BLOCK)
            near = whole @ torch.from_numpy(self.references.vectors[rows].astype(np.float32)).T
            features = torch.from_numpy(np.array(self.fine_references.vectors[rows]))
            readable = features.any(dim=1)
            alike = (asked @ metric.flat(metric.maps(features)).T).view(len(TURNS), len(whole), -1).amax(0)
            scores[:, rows] = (near + weight * alike * readable).cpu()
        order = torch.sort(scores, dim=1, descending=True, stable=True).indices
        return order[:, : self.retrieve].sort(dim=1).values

    @torch.no_grad()
    def pair_scores(self, whole: Tensor, fine: Tensor, pictures: Tensor) -> Tensor:
        """`[k]`: one image `[d]` and `[1, d']` against k pictures under their best poses."""
        metric, weight = self.learned.metric, self.learned.weight
        table = torch.from_numpy(self.references.vectors[pictures.numpy()].astype(np.float32))
        features = torch.from_numpy(self.fine_references.vectors[pictures.numpy()])
        seen = [level.expand(len(pictures), -1, -1, -1) for level in metric.maps(fine)]
        maps = metric.maps(features)
        pose = best_poses(seen[0], maps[0], self.learned.steps)
        near = metric.weigh(aligned_cosines(seen, maps, pose)) * features.any(dim=1)
        scores: Tensor = ((table * whole).sum(dim=1) + weight * near.cpu()) / (1 + weight)
        return scores
