"""What sources of published question files have in common: a file a split, pictures, and the user's graph."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import xxhash

from vispath_lit.data.lines import numbered_lines
from vispath_lit.data.questions import FIELDS
from vispath_lit.data.regrounding import Raw, Regrounder, write_report
from vispath_lit.data.sources.records import find_image
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.cached import store_of
from vispath_lit.kg.images import is_there
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import tell
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Question

MAX_LINK = 1 << 20  # Bytes of a line of links; a longer one is none.


class GroundedSource(ABC):
    """Questions whose topics and answers are placed on a graph that the data set does not come with.

    What became of them is printed and written to `<cache_dir>/regrounding/<name>-<key>/<split>.json`.

    Args:
        graph: a graph folder, or a built store.
        folder: holds the question files.
        cache_dir: where the graph's store, the vectors of its labels and the reports are kept.
        train, val, test: the file of each split in `folder`; None where there is none. Without a file for
            val, a tenth of the topics of train (seeded) is val.
        images: the folder of the pictures; None leaves them all out.
        links: a file of two columns, tab between: what the data set says (an address, a title, an id) and the
            entity's id in the graph.
        encoder: of names, for those that no entity bears.
        threshold: least cosine at which the nearest label is taken; None takes equal names alone.
        seed: of the choice of val.
    """

    name: str

    def __init__(
        self,
        graph: str,
        folder: str,
        cache_dir: str | Path,
        train: str | None = None,
        val: str | None = None,
        test: str | None = None,
        images: str | None = None,
        links: str | None = None,
        encoder: TextEncoder | None = None,
        threshold: float | None = 0.9,
        seed: int = 0,
    ) -> None:
        self.graph_folder = _folder(graph, "data.graph")
        self.folder = _folder(folder, "data.folder")
        self.images = None if images is None else _folder(images, "data.images")
        self.cache = Path(cache_dir)
        self.files = {"train": train, "val": val, "test": test}
        self.links = None if links is None else Path(links).expanduser()
        self.encoder = encoder if threshold is not None else None
        self.threshold = 1.0 if threshold is None else threshold
        self.seed = seed
        self._found: dict[str, list[Question]] = {}

    @abstractmethod
    def read(self, file: Path, split: str) -> Iterator[Raw]:
        """The questions of a file, in order.

        Raises:
            DataError: what is no question; names file, line and field.
        """

    def prepare(self) -> Path:
        return store_of(self.graph_folder, self.cache)

    def questions(self, split: str) -> list[Question]:
        if split not in self._found:
            raws = self._raws(split)
            if not raws:
                return []
            found, report = self._regrounder.questions(raws, training=split == "train")
            file = self.cache / "regrounding" / self._key / f"{split}.json"
            write_report(file, {"data": self.name, "split": split} | report.as_dict())
            tell(f"{split}: {report.in_words()}\n{file}")
            self._found[split] = found
        return self._found[split]

    def picture(self, name: str, split: str, folder: str = "") -> Path | None:
        """Where a picture is. One that is missing fails its question, but is left out in training."""
        if self.images is None or not name:
            return None
        file = find_image(self.images, name, folder)
        return None if split == "train" and not is_there(file) else file

    def _raws(self, split: str) -> list[Raw]:
        if split not in self.files:
            return self._file_of(split)
        if self.files["val"] is None and split in ("train", "val"):
            found = self._file_of("train")
            held = self._held_out(found)
            return [one for one, out in zip(found, held, strict=True) if out == (split == "val")]
        return self._file_of(split)

    def _file_of(self, split: str) -> list[Raw]:
        name = self.files.get(split)
        if name is None:
            return []
        file = self.folder / name
        found = list(self.read(file, split))
        if not found:
            raise DataError(f"{file}: no question in the file")
        seen: dict[str, int] = {}
        for number, one in enumerate(found, 1):
            if (before := seen.setdefault(one.question.id, number)) != number:
                raise DataError(
                    f"{file}: question {number} has the id {one.question.id!r} of question {before}; "
                    "ids are unique"
                )
        if self.images is not None:
            pictures = [one.question.image for one in found]
            missing = sum(1 for file in pictures if file is None or not is_there(file))
            if missing:
                tell(f"{split}: {missing} of {len(found)} questions have no picture")
        return [replace(one, question=replace(one.question, meta=_meta(one.question))) for one in found]

    def _held_out(self, found: list[Raw]) -> list[bool]:
        """A tenth of the topics (of the questions without one), at least one where there are two."""
        groups = [one.topic.own if one.topic else one.question.id for one in found]
        names = sorted(set(groups))
        random.Random(self.seed).shuffle(names)
        chosen = set(names[: max(1, round(len(names) / 10))]) if len(names) > 1 else set()
        return [group in chosen for group in groups]

    @cached_property
    def _regrounder(self) -> Regrounder:
        graph = KnowledgeGraph.open(self.prepare())
        links = {} if self.links is None else _read_links(self.links)
        return Regrounder(graph, self.encoder, self.threshold, self.cache, links)

    @property
    def _key(self) -> str:
        said = [self.graph_folder, self.folder, self.files, self.links, self.threshold, self.seed]
        key = xxhash.xxh3_64_hexdigest("\n".join(map(str, said)).encode(errors="surrogateescape"))
        return f"{type(self).__name__.lower()}-{key}"


def _meta(question: Question) -> dict[str, object]:
    """What the data set says beside the fields of a question, under names that are no fields."""
    return {f"own_{key}" if key in FIELDS else key: value for key, value in question.meta.items()}


def _read_links(file: Path) -> dict[str, str]:
    """What a data set says to the entity's id.

    Raises:
        DataError: a line of other than two columns, or a text that was given to another entity before.
    """
    if not file.is_file():
        raise DataError(f"data.links: {file} does not exist")
    found: dict[str, str] = {}
    for number, line in numbered_lines(file, MAX_LINK):
        try:
            columns = [column.strip() for column in line.decode("utf8").split("\t")]
        except UnicodeDecodeError as error:
            raise DataError(f"{file}, line {number}: not UTF-8 ({error.reason})") from error
        if not any(columns):
            continue
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{file}, line {number}: found {line[:80]!r}, expected TEXT<TAB>ENTITY ID")
        text, entity = columns
        if found.setdefault(text, entity) != entity:
            raise DataError(
                f"{file}, line {number}: {text[:80]!r} is {entity[:80]!r} here and {found[text][:80]!r} "
                "before; keep one of the two"
            )
    return found


def _folder(value: str, key: str) -> Path:
    if not value or value == "???":
        raise ConfigError(f"{key} is not set: say {key}=FOLDER")
    path = Path(value).expanduser().resolve()
    if not path.is_dir():
        raise DataError(f"{key}: {path} is no folder")
    return path
