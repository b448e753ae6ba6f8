"""Question files whose field names the config gives: those of ReasonVQA and MMhops differ by release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from vispath_lit.data.regrounding import Mention, Raw
from vispath_lit.data.sources.grounded import GroundedSource
from vispath_lit.data.sources.records import Row, read_rows
from vispath_lit.errors import ConfigError, DataError
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import Question

TAKES = (
    "id",
    "question",
    "image",
    "answers",
    "answer_ids",
    "topic_id",
    "topic_name",
    "hops",
    "split",
    "tags",
)
SPLITS = {"training": "train", "dev": "val", "valid": "val", "validation": "val", "testing": "test"}


class Mapped(GroundedSource):
    """`data=mapped data.graph=GRAPH data.folder=FOLDER data.fields.question=...`.

    Args:
        fields: for each of `TAKES` the field of the files that holds it, `outer.inner` for one inside another
            (lists are searched through), or None. `question` and `answers` are needed. With `split`, files
            may be one and the same.
        list_at: the field of a JSON file that holds the list of questions; None where the file is the list.
        separator: between alternatives inside one text of `answers`; None where there are none.
        title: the source's name in tables.

    Raises:
        ConfigError: an unknown or a missing key of `fields`.
    """

    name = "mapped"

    def __init__(
        self,
        graph: str,
        folder: str,
        cache_dir: str | Path,
        fields: Mapping[str, str | None],
        train: str | None = None,
        val: str | None = None,
        test: str | None = None,
        images: str | None = None,
        links: str | None = None,
        encoder: TextEncoder | None = None,
        threshold: float | None = 0.9,
        seed: int = 0,
        list_at: str | None = None,
        separator: str | None = None,
        title: str = "mapped",
    ) -> None:
        super().__init__(graph, folder, cache_dir, train, val, test, images, links, encoder, threshold, seed)
        if unknown := sorted(set(fields) - set(TAKES)):
            raise ConfigError(f"data.fields has {unknown}; expected some of {list(TAKES)}")
        for name in ("question", "answers"):
            if not fields.get(name):
                raise ConfigError(f"data.fields.{name} is not set: name the field that holds it")
        self.fields = fields
        self.list_at = list_at
        self.separator = separator
        self.name = title

    def read(self, file: Path, split: str) -> Iterator[Raw]:
        for i, row in enumerate(read_rows(file, self.list_at)):
            if i == 0:
                self._check(row)
            own = self._one(row, "split").lower()
            if not own or SPLITS.get(own, own) == split:
                yield self._raw(row, split)

    def _raw(self, row: Row, split: str) -> Raw:
        answers = self._many(row, "answers", self.separator)
        ids = self._many(row, "answer_ids")
        field = str(self.fields["answers"])
        if not answers:
            row.fail(field, "missing or empty")
        # Names belong to ids one by one, or all to the only one; else nobody knows whose they are.
        if len(ids) == len(answers) and len(ids) > 1:
            mentions = [Mention((id,), (name,)) for id, name in zip(ids, answers, strict=True)]
        elif len(ids) > 1:
            mentions = [Mention((id,)) for id in ids]
        else:
            mentions = [Mention(ids, answers)]
        topic = Mention(self._many(row, "topic_id")[:1], self._many(row, "topic_name")[:1])
        hops = self.fields.get("hops")
        question = Question(
            id=self._one(row, "id") or f"{split}-{row.number}",
            text=row.needed(str(self.fields["question"])),
            image=self.picture(self._one(row, "image"), split),
            answers=answers,
            hops=row.whole(hops) if hops else None,
            split=split,
            tags=self._many(row, "tags"),
        )
        return Raw(question, topic if topic.own else None, tuple(mentions))

    def _one(self, row: Row, name: str) -> str:
        return next(iter(self._many(row, name)), "")

    def _many(self, row: Row, name: str, separator: str | None = None) -> tuple[str, ...]:
        field = self.fields.get(name)
        return row.texts(field, separator) if field else ()

    def _check(self, row: Row) -> None:
        """Refuses a mapping that does not fit the first record, whose fields it names."""
        for name in ("question", "answers"):
            field = str(self.fields[name])
            if row.get(field) is None:
                raise DataError(
                    f"{row.file}, {row.unit} {row.number}: no field {field!r} for {name}; the record has "
                    f"{sorted(map(str, row.values))[:30]}. Say which one with data.fields.{name}=FIELD"
                )
