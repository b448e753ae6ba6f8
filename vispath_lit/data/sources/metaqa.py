"""MetaQA: text-only questions of one to three hops over films, with gold paths from their published types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vispath_lit.data.importers.metaqa import convert
from vispath_lit.data.sources.converted import ConvertedSource, converted
from vispath_lit.errors import ConfigError
from vispath_lit.kg.faults import OnError


class MetaQA(ConvertedSource):
    """`data=metaqa data.folder=FOLDER`; the published files are converted once, into the cache.

    Args:
        folder: the published folder with `kb.txt`, or an archive of it.
        cache_dir: where store and question files are kept, by names, sizes and times of the published ones.
        hops: of the questions to take.
        variant: `vanilla` or `ntm`.
        on_error: `fail` stops at the first bad line, `skip` counts them.

    Raises:
        ConfigError: a value that is not allowed, or no folder.
        DataError: a missing folder.
    """

    name = "metaqa"

    def __init__(
        self,
        folder: str,
        cache_dir: str | Path,
        hops: Sequence[int] = (1, 2, 3),
        variant: str = "vanilla",
        on_error: OnError = "fail",
    ) -> None:
        if isinstance(hops, str) or not hops or not set(hops) <= {1, 2, 3}:
            raise ConfigError(f"data.hops is {hops!r}; expected a list such as [1, 2, 3]")
        if variant not in ("vanilla", "ntm"):
            raise ConfigError(f"data.variant is {variant!r}; expected vanilla or ntm")
        self.folder = folder
        self.cache = Path(cache_dir)
        self.hops = tuple(sorted(set(hops)))
        self.variant = variant
        self.on_error = on_error

    def _converted(self) -> Path:
        def make(source: Path, out: Path) -> object:
            return convert(source, out, hops=self.hops, variant=self.variant, on_error=self.on_error)

        return converted(self.folder, self.cache, f"metaqa {self.hops} {self.variant} {self.on_error}", make)
