"""Lays one feature map over another: the small turn, stretch and shift under which they match best."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.optim import Adam

# How far a pose can go: degrees, and shares of the picture's side. A photograph shows about SEEN of a side.
TURN, STRETCH, SHIFT = 16.0, 0.2, 0.16
SEEN = 0.88
TURNS = (-8.0, 0.0, 8.0)  # degrees by which a photograph is turned back before anything is laid over it


def affine(pose: Tensor) -> Tensor:
    """`[n, 2, 3]` for `F.affine_grid`: the part of a picture that is seen under each pose.

    Args:
        pose: `[n, 5]` without bounds: turn, width, height, and the middle's place across and down. Zeros are
            the middle of the picture, upright.
    """
    bounded = pose.tanh()
    angle = torch.deg2rad(TURN * bounded[:, 0])
    across, down = (SEEN + STRETCH * bounded[:, 1:3]).unbind(1)
    x, y = (SHIFT * bounded[:, 3:5]).unbind(1)
    cos, sin = angle.cos(), angle.sin()
    rows = (
        torch.stack([cos * across, -sin * down, cos * x - sin * y], dim=1),
        torch.stack([sin * across, cos * down, sin * x + cos * y], dim=1),
    )
    return torch.stack(rows, dim=1)


def posed(maps: Tensor, pose: Tensor) -> Tensor:
    """`[n, c, s, s]` maps as they are seen under each pose; beyond the border they go on as at it."""
    grid = F.affine_grid(affine(pose), list(maps.shape), align_corners=False)
    return F.grid_sample(maps, grid, padding_mode="border", align_corners=False)


def turned_back(maps: Tensor) -> list[Tensor]:
    """What `[n, c, s, s]` maps may have been before the picture was cut and turned, for each of `TURNS`."""
    turns = torch.deg2rad(torch.tensor(TURNS, device=maps.device))
    found = []
    for turn in turns:
        rows = torch.stack([torch.stack([turn.cos(), -turn.sin()]), torch.stack([turn.sin(), turn.cos()])])
        theta = F.pad(rows / SEEN, (0, 1)).expand(len(maps), 2, 3)
        grid = F.affine_grid(theta, list(maps.shape), align_corners=False)
        found.append(F.grid_sample(maps, grid.to(maps), padding_mode="border", align_corners=False))
    return found


def cosines(maps: Tensor, others: Tensor) -> Tensor:
    """`[n]` cosine of each pair of maps `[n, c, s, s]`, all cells together."""
    return (F.normalize(maps.flatten(1), dim=1) * F.normalize(others.flatten(1), dim=1)).sum(dim=1)


def best_poses(seen: Tensor, pictures: Tensor, steps: int, pace: float = 0.25) -> Tensor:
    """`[n, 5]`: the pose of each picture that comes nearest to what is seen, by a few steps of Adam.

    The best of all poses on the way is taken, the first one on a tie. Pairs do not influence each other.

    Args:
        seen: `[n, c, s, s]` maps of questions' images.
        pictures: `[n, c, s, s]` maps of reference images.
        steps: of the ascent; 0 leaves every picture in the middle and upright.
        pace: highest change of a pose in a step, before its bounds.
    """
    with torch.inference_mode(mode=False), torch.enable_grad():
        seen, pictures = seen.detach().clone(), pictures.detach().clone()
        pose = torch.zeros(len(seen), 5, device=seen.device, requires_grad=True)
        best, chosen = seen.new_full((len(seen),), -torch.inf), torch.zeros_like(pose)
        ascent = Adam([pose], lr=pace, betas=(0.7, 0.9), maximize=True)
        for step in range(steps + 1):
            near = cosines(posed(pictures, pose), seen)
            better = near.detach() > best
            best = torch.where(better, near.detach(), best)
            chosen = torch.where(better[:, None], pose.detach(), chosen)
            if step < steps:
                ascent.zero_grad()
                near.sum().backward()  # type: ignore[no-untyped-call]
                ascent.step()
    return chosen


def aligned_cosines(seen: Sequence[Tensor], pictures: Sequence[Tensor], pose: Tensor) -> Tensor:
    """`[n, L]`: the cosine at each of L levels, every picture under its pose."""
    levels = zip(seen, pictures, strict=True)
    return torch.stack([cosines(posed(maps, pose), mine) for mine, maps in levels], dim=1)
