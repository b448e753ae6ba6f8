"""Chain examination without a language model: no opinion, so the best scores stay."""

from __future__ import annotations

from collections.abc import Sequence

from vispath_lit.types import Path, Query


class NoExaminer:
    """The fixed `ChainExaminer`: an empty pick for every question."""

    def examine(self, queries: Sequence[Query], chains: Sequence[Sequence[Path]]) -> list[list[int]]:
        return [[] for _ in queries]
