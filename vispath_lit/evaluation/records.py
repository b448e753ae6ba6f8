"""What is written down about one question: a line of `predictions.jsonl`, readable without the graph.

A line holds the answer, the walked paths as ids and labels, what the search did at each hop, what was
right, and what it cost. The tables are computed from these lines alone, so that a resumed run and a fresh
one agree.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from vispath_lit.errors import DataError
from vispath_lit.evaluation.files import rounded, write_text
from vispath_lit.types import Cost, Provenance

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Walk:
    """A path as ids and labels: n + 1 entities, n relations (`~id` walks a triple backwards)."""

    entities: tuple[str, ...]
    relations: tuple[str, ...]
    entity_labels: tuple[str, ...]
    relation_labels: tuple[str, ...]
    score: float = 0.0

    def __post_init__(self) -> None:
        steps = len(self.relations)
        if not steps == len(self.relation_labels) == len(self.entities) - 1 == len(self.entity_labels) - 1:
            raise ValueError("a path has an entity more than relations, and a label for each")

    @property
    def words(self) -> str:
        """The labels in one line."""
        steps = zip(self.relation_labels, self.entity_labels[1:], strict=True)
        return self.entity_labels[0] + "".join(f" —{relation}→ {entity}" for relation, entity in steps)


@dataclass(frozen=True, slots=True)
class Start:
    """A candidate start entity."""

    id: str
    label: str
    score: float
    origin: str


@dataclass(frozen=True, slots=True)
class Hop:
    """One hop of the search: how many were looked at, what was kept, and the best of what was pruned.

    Attributes:
        edges: edges on the frontier.
        discovered: paths after Eq. 5-6.
        chains: paths after Eq. 8.
        kept: the kept paths, best first.
        pruned: the best chains that were not kept.
    """

    intent: str
    edges: int
    discovered: int
    chains: int
    kept: tuple[Walk, ...]
    pruned: tuple[Walk, ...]
    answerability: float


@dataclass(frozen=True, slots=True)
class Gold:
    """What a question accepts. `in_graph` is None where the question names no answer ids.

    Attributes:
        kind: the kind of the question's picture, None where it has none or nobody can tell.
        pair: what the questions share that are to be right together, such as one text with two pictures.
    """

    answers: tuple[str, ...]
    answer_ids: tuple[str, ...]
    start: str | None
    start_label: str
    paths: tuple[Walk, ...]
    hops: int | None
    tags: tuple[str, ...]
    in_graph: bool | None
    kind: str | None = None
    pair: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """One question, its prediction and its scores.

    Attributes:
        key: hash of the question, the graph, the system and what was granted; a resumed run keeps a line only
            where it is the same.
        path: the best path, None where there is none.
        others: further kept paths of the deciding hop.
        ranked: labels of the ranked answers.
        answer_set: size of the answer set.
        scores: metric to value; a metric is absent where the question has no gold for it, whatever was
            predicted.
        lost: where the gold path was lost (see `vispath_lit.evaluation.pruning`); None without a gold path.
    """

    id: str
    key: str
    question: str
    answer: str
    answer_id: str | None
    provenance: Provenance
    confidence: float
    depth: int
    statement: str
    path: Walk | None
    others: tuple[Walk, ...]
    candidates: tuple[Start, ...]
    ranked: tuple[str, ...]
    answer_set: int
    trace: tuple[Hop, ...]
    gold: Gold
    scores: Mapping[str, float]
    lost: str | None
    cost: Cost

    @property
    def cluster(self) -> str:
        """The start entity, else the question itself: what the bootstrap draws."""
        return f"start {self.gold.start}" if self.gold.start is not None else f"question {self.id}"

    @property
    def correct(self) -> float:
        """Hits@1, the correctness that confidence is measured against."""
        return self.scores.get("hits@1", 0.0)


_adapter = TypeAdapter(Record)


def to_line(record: Record) -> str:
    """The record as one line of JSON, floats rounded to six digits."""
    return json.dumps(rounded(asdict(record)), ensure_ascii=False, allow_nan=False)


def settled(record: Record) -> Record:
    """The record as it will be read back from its line, so that a resumed run and a fresh one are equal."""
    return _adapter.validate_json(to_line(record).encode("utf8", "replace"))


def write_records(path: Path, records: Iterable[Record]) -> None:
    """Writes all lines anew, atomically."""
    write_text(path, "".join(to_line(record) + "\n" for record in records))


def read_records(path: Path) -> list[Record]:
    """The records of a file in its order; a last line without its end (a killed run) is dropped with a
    notice.

    Raises:
        DataError: a line that is no record, with file and line number.
    """
    lines = path.read_bytes().split(b"\n")
    if lines.pop():
        logger.warning("%s: the last line is incomplete and will be computed again", path.name)
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_adapter.validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise DataError(
                f"{path.name}, line {number}: {place or 'line'}: {first['msg']}. Expected a line that "
                "an evaluation wrote; remove the file to start anew."
            ) from error
    return records
