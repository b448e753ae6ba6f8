"""WebQSP and CWQ in the published forms of RoG and NSM: text-only questions, each with a part of Freebase."""

from __future__ import annotations

from pathlib import Path

from vispath_lit.data.importers.rog import convert
from vispath_lit.data.sources.converted import ConvertedSource, converted
from vispath_lit.kg.faults import OnError


class WebQSP(ConvertedSource):
    """`data=webqsp data.folder=FOLDER`; the published files are converted once, into the cache.

    The graph is the union of all questions' parts. No path is published as gold: training takes weak ones,
    and questions without any are reported. Those that cannot be answered for want of a path stay in every
    table.

    Args:
        folder: the published files, a folder of them, or an archive.
        cache_dir: where store and question files are kept, by names, sizes and times of the published ones.
        on_error: `fail` stops at the first bad line, `skip` counts them.

    Raises:
        ConfigError: no folder.
        DataError: a missing folder.
    """

    name = "webqsp"

    def __init__(self, folder: str, cache_dir: str | Path, on_error: OnError = "fail") -> None:
        self.folder = folder
        self.cache = Path(cache_dir)
        self.on_error = on_error

    def _converted(self) -> Path:
        def make(source: Path, out: Path) -> object:
            return convert([source], out, on_error=self.on_error)

        return converted(self.folder, self.cache, f"webqsp {self.on_error}", make)
