"""The processes of one run that share its work: who is first, what all know, who does which batch.

Alone, everything here hands back what it was given. With several processes each function is one that all of
them must call, in the same order. Objects travel over an own gloo group: they need no GPU, and one process
may work for hours while the others wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

from torch import distributed

from vispath_lit.progress import track

T = TypeVar("T")
R = TypeVar("R")
PATIENCE = timedelta(days=7)
# Who a process is before there is a group: torchrun, Lightning's own launcher, srun.
RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID")
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID")
_groups: list[tuple[Any, Any]] = []  # the default group and the own one beside it


def count() -> int:
    """How many processes there are."""
    return distributed.get_world_size() if _together() else 1


def rank() -> int:
    """The number of this one, from 0."""
    return distributed.get_rank() if _together() else 0


def is_first() -> bool:
    """Whether this process writes and prints for all; known before they have found each other, too."""
    return rank() == 0 if _together() else _number(RANKS) == 0


def shared(value: T) -> T:
    """What the first process has, on all."""
    if count() == 1:
        return value
    box = [value]
    distributed.broadcast_object_list(box, 0, group=_group())
    return box[0]


def gathered(value: T) -> list[T]:
    """What each process has, on all, in their order."""
    if count() == 1:
        return [value]
    boxes: list[Any] = [None] * count()
    distributed.all_gather_object(boxes, value, group=_group())
    return boxes


def together(batches: Sequence[T], work: Callable[[T], R], description: str) -> Iterator[R]:
    """The results of all batches in their order, on all processes; each works on every `count`-th.

    A batch is never divided, so that its results have the same bits with any number of processes.
    """
    for first in track(range(0, len(batches), count()), description):
        some = batches[first : first + count()]
        mine = [work(batch) for batch in some[rank() : rank() + 1]]
        for results in gathered(mine):
            yield from results


@contextmanager
def in_turn() -> Iterator[None]:
    """For what is made once and then found: first one process, then one of each machine, then the rest."""
    turn = 0 if rank() == 0 else 1 if _number(LOCAL_RANKS) == 0 else 2
    for _ in range(turn):
        gathered(None)
    yield
    for _ in range(2 - turn):
        gathered(None)


def _together() -> bool:
    return distributed.is_available() and distributed.is_initialized()


def _group() -> Any:
    if not _groups or _groups[0][0] is not distributed.group.WORLD:
        _groups[:] = [(distributed.group.WORLD, distributed.new_group(backend="gloo", timeout=PATIENCE))]
    return _groups[0][1]


def _number(names: Sequence[str]) -> int:
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), 0)
