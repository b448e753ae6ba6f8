"""WebQSP and CWQ, a subgraph a question, in the form of RoG (Luo et al., 2024) or NSM (He et al., 2021).

RoG form, Parquet, JSON Lines or a JSON array; the graph is the union of all questions':

    {"id", "question", "answer": [], "q_entity": [], "a_entity": [], "graph": [[subject, relation, object]]}

NSM form, `train_simple.json` beside `entities.txt` and `relations.txt`, whose lines the numbers count:

    {"id", "question", "entities": [0], "answers": [{"kb_id", "text"}], "subgraph": {"tuples": [[0, 1, 2]]}}

Literals, dates and unnamed nodes (`m.0abc`) are entities like others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import Batch, Unit
from vispath_lit.kg.staging.lines import Rows, reject_empty, reject_inverse_marks
from vispath_lit.kg.staging.parquet import parquet_batches
from vispath_lit.kg.staging.records import Numbered, records
from vispath_lit.kg.staging.streams import base_name, walk
from vispath_lit.kg.staging.tally import Tally

SPLITS = {"train": "train", "dev": "val", "val": "val", "valid": "val", "validation": "val", "test": "test"}
ENDINGS = (".parquet", ".jsonl", ".json")
BATCH = 64  # Questions of a Parquet file that are read at a time.
NAMES = {"entities.txt": "entities", "relations.txt": "relations"}


@dataclass(frozen=True)
class Format:
    """WebQSP and CWQ in RoG's or NSM's form: the union of all subgraphs, and questions (--questions)."""

    sources: tuple[Path, ...] = field(
        metadata={
            "help": "The files of the splits (train, validation or dev, test in their names), or a folder."
        }
    )
    keep_unlinked: bool = True

    def units(self) -> Iterator[Unit]:
        for part in parts(self.sources):
            yield Unit(part.source, partial(_triples, part))

    def labels(self, ids: Any) -> Any:
        """Names are labels. Of a Freebase relation the type and the property: `person place of birth`."""
        pattern = r"^(?:[a-z0-9_]+\.)+([a-z0-9_]+)\.([a-z0-9_]+)$"
        freebase = pc.match_substring_regex(ids, pattern)
        spoken = pc.replace_substring_regex(ids, pattern, r"\1 \2")
        return pc.if_else(freebase, pc.replace_substring(spoken, "_", " "), ids)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question as the files have it.

    Attributes:
        line: for messages.
        steps: `[3n]` subject, relation, object of its n triples, in turn; an Arrow text column.
    """

    line: int
    id: str
    text: str
    answers: tuple[str, ...]
    topics: tuple[str, ...]
    answer_ids: tuple[str, ...]
    steps: Any


@dataclass(frozen=True, slots=True)
class Part:
    """Some questions of one split, not parsed yet."""

    source: str
    split: str
    load: Any

    def asked(self, tally: Tally) -> Iterator[Asked]:
        """The questions; malformed ones are faults."""
        for number, record in self.load(tally):
            try:
                yield _asked(number, record)
            except _MalformedError as error:
                tally.skip(
                    self.source, number, f"malformed question: {error}", f"id {record.get('id')!r:.60}"
                )


def parts(sources: Sequence[Path], wanted: str | None = None) -> Iterator[Part]:
    """All questions of the sources, in order; with `wanted` those of one split.

    Raises:
        DataError: a file whose name tells no split, or numbers without their lists of names.
    """
    names = _name_lists(sources)
    for source in sources:
        for member in walk(source):
            name = base_name(member.name)
            if not name.endswith(ENDINGS) or name.startswith("."):
                continue
            if names and not name.endswith("_simple.json"):
                continue
            split = _split(name, member.source)
            if wanted not in (None, split):
                continue
            if name.endswith(".parquet"):
                for batch, line in parquet_batches(member, BATCH):
                    yield Part(member.source, split, partial(_rows, batch, line))
            else:
                for found in records(member):
                    load = _numbered(found.load, names) if names else found.load
                    yield Part(found.source, split, load)


def _split(name: str, source: str) -> str:
    words = name.replace(".", "-").replace("_", "-").lower().split("-")
    found = [SPLITS[word] for word in words if word in SPLITS]
    if not found:
        raise DataError(
            f"{source}: the name tells no split; expected one of {', '.join(SPLITS)} in it, as in test.jsonl"
        )
    return found[0]


def _rows(batch: Any, line: int, tally: Tally) -> Iterator[Numbered]:
    """Rows as records; the nested lists of triples stay in Arrow, where they are flattened at once."""
    plain = batch.select([name for name in batch.schema.names if name != "graph"]).to_pylist()
    graph = batch.column("graph") if "graph" in batch.schema.names else [None] * len(plain)
    for offset, record in enumerate(plain):
        yield line + offset, {**record, "graph": graph[offset]}


class _MalformedError(Exception):
    """Says which field of a question is not as expected."""


def _asked(number: int, record: Mapping[str, Any]) -> Asked:
    return Asked(
        number,
        _text(record, "id"),
        _text(record, "question"),
        _texts(record, "answer"),
        _texts(record, "q_entity"),
        _texts(record, "a_entity"),
        _steps(record.get("graph")),
    )


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise _MalformedError(f"{name} is no text")
    return value


def _texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts, each once; blank ones are left out. One text stands for a list of one."""
    value = record.get(name)
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _MalformedError(f"{name} is no list of texts")
    return tuple(dict.fromkeys(item for item in value if item.strip() and "\0" not in item))


def _steps(value: Any) -> Any:
    try:
        if isinstance(value, pa.Scalar):
            nested = value.values if value.is_valid else pa.array([], type=pa.list_(pa.list_(pa.string())))
        else:
            nested = pa.array(value, type=pa.list_(pa.string()))
        widths = pc.list_value_length(nested)
        if nested.null_count or (len(nested) and not pc.all(pc.equal(widths, 3)).as_py()):
            raise _MalformedError("graph has a step that is not [subject, relation, object]")
        steps = nested.flatten().cast(pa.large_string())
    except (pa.ArrowException, TypeError, AttributeError, UnicodeEncodeError) as error:
        raise _MalformedError("graph is no list of [subject, relation, object] texts") from error
    if steps.null_count:
        raise _MalformedError("graph has a step with null")
    return steps


def _triples(part: Part, tally: Tally) -> Iterator[Batch]:
    columns, lines = [], []
    for asked in part.asked(tally):
        columns.append(asked.steps)
        lines.append(np.full(len(asked.steps) // 3, asked.line, dtype=np.int64))
    if not columns:
        return
    steps = pa.concat_arrays(columns)
    rows = Rows(part.source, [steps.take(pa.array(at)) for at in _thirds(len(steps))], np.concatenate(lines))
    rows = reject_empty(rows, ("subject", "relation", "object"), tally)
    rows = reject_inverse_marks(rows, 1, tally)
    yield Batch("triples", rows.columns, rows.source, rows.lines)


def _thirds(length: int) -> tuple[NDArray[np.int64], ...]:
    return tuple(np.arange(start, length, 3, dtype=np.int64) for start in range(3))


def _name_lists(sources: Sequence[Path]) -> dict[str, list[str]]:
    """NSM's entities.txt and relations.txt; empty where there are none."""
    found: dict[str, list[str]] = {}
    for source in sources:
        if not source.is_dir() and source.name not in NAMES and source.suffix in ENDINGS:
            continue  # Saves a pass over a large file.
        for member in walk(source):
            if kind := NAMES.get(base_name(member.name)):
                data = b"".join(block.data for block in member.blocks())
                try:
                    found[kind] = data.decode("utf8").removesuffix("\n").split("\n")
                except UnicodeDecodeError as error:
                    raise DataError(f"{member.source}: not UTF-8 ({error})") from error
    if found and len(found) != len(NAMES):
        raise DataError(f"found only {', '.join(found)} of {', '.join(NAMES)}; NSM's form needs both")
    return found


def _numbered(load: Any, names: Mapping[str, Sequence[str]]) -> Any:
    """Records of NSM's form as those of RoG's."""

    def loaded(tally: Tally) -> Iterator[Numbered]:
        for number, record in load(tally):
            yield number, _rog_form(record, names)

    return loaded


def _rog_form(record: Mapping[str, Any], names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """What does not fit becomes None, which is reported as any malformed field."""
    entities, relations = names["entities"], names["relations"]
    given = record.get("answers")
    listed = [] if given is None else given
    answers = [answer for answer in listed if isinstance(answer, dict)] if isinstance(listed, list) else None
    subgraph = record.get("subgraph")
    tuples = subgraph.get("tuples") if isinstance(subgraph, dict) else None
    graph = None
    if isinstance(tuples, list) and all(isinstance(step, list) and len(step) == 3 for step in tuples):
        columns = (entities, relations, entities)
        graph = [[_named(n, known) for n, known in zip(step, columns, strict=True)] for step in tuples]
    topics = record.get("entities")
    return {
        "id": record.get("id"),
        "question": record.get("question"),
        "answer": None if answers is None else [a.get("text") or a.get("kb_id") for a in answers],
        "q_entity": [_named(n, entities) for n in topics] if isinstance(topics, list) else None,
        "a_entity": None if answers is None else [answer.get("kb_id") for answer in answers],
        "graph": graph,
    }


def _named(number: Any, names: Sequence[str]) -> str | None:
    if type(number) is int and 0 <= number < len(names):
        return names[number]
    return number if isinstance(number, str) else None
