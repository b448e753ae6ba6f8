"""The seam between long work and who does it: `map` over pieces whose results come in the pieces' order.

Whoever asks for the results writes them, in order; so files have the same bytes whichever engine worked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Protocol, TypeVar

from vispath_lit.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")


class Engine(Protocol):
    """Does pieces of work."""

    def map(self, work: Callable[[T], R], pieces: Callable[[], Iterable[T]]) -> Iterator[R]:
        """The result of each piece, in order, as soon as it is there.

        Both functions, the pieces and the results may travel to other processes and machines. What one of
        them raises is raised here, once the results before it are taken.

        Args:
            pieces: makes the pieces, one after the other; called once.
        """
        ...


class Alone:
    """One piece after the other, by the process that asks."""

    def map(self, work: Callable[[T], R], pieces: Callable[[], Iterable[T]]) -> Iterator[R]:
        """See `Engine.map`."""
        return map(work, pieces())


class EngineName(StrEnum):
    """The engines of the command line."""

    alone = "alone"
    ray = "ray"


def make_engine(name: EngineName, workers: int | None = None) -> Engine:
    """The engine of that name.

    Args:
        workers: of Ray, that work at the same time; None takes all processors of its cluster.

    Raises:
        ConfigError: workers without Ray, none of them, or Ray is not installed.
    """
    if name is EngineName.alone:
        if workers is not None:
            raise ConfigError(f"{workers} workers, but one process works alone: say --engine ray, too")
        return Alone()
    from vispath_lit.engines.ray_data import RayData

    return RayData(workers)
