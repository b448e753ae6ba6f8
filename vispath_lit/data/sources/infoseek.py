"""InfoSeek: questions about pictured entities, as published, with and without the entities' ids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vispath_lit.data.regrounding import Mention, Raw
from vispath_lit.data.sources.grounded import GroundedSource
from vispath_lit.data.sources.records import Row, read_rows
from vispath_lit.errors import DataError
from vispath_lit.types import Question

TOLERANCE = 0.1  # Of a number without a range, as a share of it.
UNSEEN = ("unseen_question", "unseen_entity")


class InfoSeek(GroundedSource):
    """`data=infoseek data.graph=GRAPH data.folder=FOLDER`.

    The entity of the picture is read from `<file>_withkb.jsonl` beside a file (or from the file itself), the
    type of the question from `<file>_qtype.jsonl`, where these are. Numbers are right within their range.
    The tags `unseen_question` and `unseen_entity` are what the final score is the harmonic mean of.
    """

    name = "infoseek"

    def read(self, file: Path, split: str) -> Iterator[Raw]:
        entities = _beside(file, "withkb")
        types = _beside(file, "qtype")
        for row in read_rows(file):
            id = row.needed("data_id")
            own = row if row.get("entity_id") is not None else entities.get(id)
            yield self._raw(row, id, own, types.get(id), split)

    def _raw(self, row: Row, id: str, entity: Row | None, kind: Row | None, split: str) -> Raw:
        ranges, texts = _answers(row)
        answers = texts or row.texts("answer") or row.fail("answer", "missing or empty")
        type_of = kind.text("question_type").lower() if kind is not None else ""
        part = row.text("data_split")
        tags = [name for name in UNSEEN if part.endswith(name)] + [f"type:{type_of}"] * bool(type_of)
        question = Question(
            id=id,
            text=row.needed("question"),
            image=self.picture(row.text("image_id"), split),
            answers=answers,
            split=split,
            tags=tuple(tags),
            meta={"scoring": {"kind": "range", "ranges": ranges} if ranges else {"kind": "exact"}},
        )
        topic = None
        if entity is not None and (entity.text("entity_id") or entity.text("entity_text")):
            topic = Mention(entity.texts("entity_id"), entity.texts("entity_text"))
        return Raw(question, topic, () if ranges else (Mention(names=answers),))


def _answers(row: Row) -> tuple[list[list[float]], tuple[str, ...]]:
    """The ranges of a numeric answer, or the accepted texts of another one."""
    given = row.get("answer_eval")
    listed: list[Any] = given if isinstance(given, list) else [] if given is None else [given]
    ranges: list[list[float]] = []
    texts: list[str] = []
    for one in listed:
        if not isinstance(one, dict):
            texts += Row(row.file, row.number, {"answer_eval": one}).texts("answer_eval")
            continue
        limits = one.get("range")
        if limits is None:
            value = _number(row, one.get("wikidata"))
            limits = sorted((value * (1 - TOLERANCE), value * (1 + TOLERANCE)))
        if not isinstance(limits, list) or len(limits) != 2:
            row.fail("answer_eval", f"found the range {limits!r:.80}, expected [low, high]")
        low, high = (_number(row, limit) for limit in limits)
        if low > high:
            row.fail("answer_eval", f"found the range {[low, high]}, whose low end is above its high one")
        ranges.append([low, high])
    return ranges, tuple(dict.fromkeys(texts))


def _number(row: Row, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) > 1e300 or value != value:
        row.fail("answer_eval", f"found {value!r:.80}, expected a finite number")
    return float(value)


def _beside(file: Path, what: str) -> dict[str, Row]:
    """The rows of `<file>_<what>` by question; none where there is no such file."""
    other = file.with_name(f"{file.stem}_{what}{file.suffix}")
    if not other.is_file():
        return {}
    found: dict[str, Row] = {}
    for row in read_rows(other):
        id = row.needed("data_id")
        if id in found:
            raise DataError(f"{other}, line {row.number}: data_id {id!r} was used in line {found[id].number}")
        found[id] = row
    return found
