"""One picture that is still to be rasterised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """One picture.

    Attributes:
        group: pictures of one kind and group are held against each other.
        svg: the drawing; laid over `ground` where there is one, which many pictures share.
        fonts: font files that the drawing needs.
        rank: among pictures that look the same, a single one of rank 0 may stay.
    """

    entity: str
    kind: str
    group: str
    svg: str
    fonts: tuple[str, ...] = ()
    rank: int = 0
    ground: str = ""

    @property
    def file(self) -> str:
        return f"{self.kind}/{self.entity.split(':', 1)[1]}.png"
