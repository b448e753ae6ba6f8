"""Published files that are converted once, into the cache."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

import xxhash

from vispath_lit.data.questions import read_questions
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.types import Question
from vispath_lit.whole import folder_beside

VERSION = 1  # Of the conversions; another one converts anew.


class ConvertedSource(ABC):
    """A `QuestionSource` whose published files are converted to a store and to question files."""

    @abstractmethod
    def _converted(self) -> Path:
        """The folder that holds `store/` and `questions/`, made where it is missing."""

    def prepare(self) -> Path:
        return self._converted() / "store"

    def questions(self, split: str) -> list[Question]:
        file = self._converted() / "questions" / f"{split}.jsonl"
        return read_questions(file) if file.is_file() else []


def converted(source: str, cache_dir: Path, settings: str, make: Callable[[Path, Path], object]) -> Path:
    """The folder that `make(source, folder)` filled, now or at an earlier time from the same files.

    Args:
        settings: what else the content of the folder depends on; its first word names the folder.

    Raises:
        ConfigError: no source is given.
        DataError: it does not exist, or `make` refuses it.
    """
    if not source or source == "???":
        raise ConfigError("data.folder is not set: say data.folder=FOLDER with the published files")
    place = Path(source).expanduser().resolve()
    if not place.exists():
        raise DataError(f"data.folder: {place} does not exist")
    folder = cache_dir / settings.split()[0] / _key(place, settings)
    if not folder.is_dir():
        with folder_beside(folder) as partial:
            make(place, partial)
            if not folder.is_dir():  # Another process may have been faster.
                partial.rename(folder)
    return folder


def _key(place: Path, settings: str) -> str:
    """Hash of names, sizes and times of the files; archives are large, and read once anyway."""
    key = xxhash.xxh3_128(f"{VERSION} {settings}\n".encode())
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    for file in files:
        if file.is_file():
            stat = file.stat()
            name = file.relative_to(place.parent)
            key.update(f"{name} {stat.st_size} {stat.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return key.hexdigest()
