from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from vispath_lit.models.grounders.alignment import (
    SEEN,
    TURNS,
    affine,
    best_poses,
    cosines,
    posed,
    turned_back,
)

MIDDLE = torch.zeros(1, 5)


def smooth(seed: int, channels: int = 4, side: int = 14) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    coarse = torch.randn(1, channels, 5, 5, generator=rng)
    return F.interpolate(coarse, size=(side, side), mode="bicubic", align_corners=False)


def test_no_pose_is_the_middle_upright() -> None:
    expected = torch.tensor([[[SEEN, 0.0, 0.0], [0.0, SEEN, 0.0]]])
    torch.testing.assert_close(affine(MIDDLE), expected)
    flat = torch.ones(1, 2, 7, 7)
    torch.testing.assert_close(posed(flat, torch.randn(1, 5)), flat)


@pytest.mark.parametrize("seed", range(3))
def test_the_pose_under_which_a_map_was_seen_is_found(seed: int) -> None:
    picture = smooth(seed)
    pose = torch.randn(1, 5, generator=torch.Generator().manual_seed(seed)) * 0.5
    seen = posed(picture, pose)
    found = best_poses(seen, picture, steps=25)
    before = float(cosines(posed(picture, MIDDLE), seen))
    assert float(cosines(posed(picture, found), seen)) > max(0.98, before)


def test_pairs_do_not_influence_each_other() -> None:
    seen, pictures = torch.cat([smooth(i) for i in range(4)]), torch.cat([smooth(i) for i in range(4, 8)])
    with torch.inference_mode():
        together = best_poses(seen, pictures, steps=5)
    alone = torch.cat([best_poses(seen[i : i + 1], pictures[i : i + 1], steps=5) for i in range(4)])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=0)


def test_no_steps_leave_the_middle() -> None:
    assert torch.equal(best_poses(smooth(0), smooth(1), steps=0), MIDDLE)


@pytest.mark.parametrize("turn", range(len(TURNS)))
def test_one_of_the_turns_undoes_a_cut_and_turned_picture(turn: int) -> None:
    picture = smooth(turn)
    angle = torch.tensor([[TURNS[turn] / 16.0, 0.0, 0.0, 0.0, 0.0]]).atanh()
    seen = posed(picture, angle)
    near = [float(cosines(back, picture)) for back in turned_back(seen)]
    assert max(near) > max(0.93, float(cosines(seen, picture)))
    assert len(set(near)) == len(TURNS)
