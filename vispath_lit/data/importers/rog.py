"""The questions of WebQSP and CWQ (RoG's or NSM's form) as question files, with the subgraph of each.

    OUT/store                      the union of all questions' graphs
    OUT/questions/<split>.jsonl    the questions; no path is claimed to be gold, so training takes weak ones
    OUT/questions/<split>.subgraphs.arrow    each question's own triples, as indices of the store
    OUT/questions/report.json      counts, written last

A question is kept whatever its subgraph holds; one whose own subgraph has no path of at most four steps from
a topic to an answer has the tag `no_path`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.data.importers.files import write_report
from vispath_lit.data.questions import write_questions
from vispath_lit.errors import DataError
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.importers.rog import SPLITS, Asked, Format, Part, parts
from vispath_lit.kg.staging.run import import_graph
from vispath_lit.kg.staging.tally import Tally
from vispath_lit.kg.staging.vocabulary import Vocabulary
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.types import Question

D_MAX = 4
INTS = pa.list_(pa.int32())
SCHEMA = pa.schema({"id": pa.string(), "head": INTS, "relation": INTS, "tail": INTS})
UNNAMED = r"^[mg]\.[0-9a-z_]+$"
LITERAL = r"^[+-]?\d+([.,]\d+)*([eE][+-]?\d+)?$|^-?\d{4}-\d\d(-\d\d)?(T[\d:.Z+-]*)?$"


class Subgraphs:
    """Each question's own triples, read from the mapped file.

    Raises:
        DataError: no such file, or one that is not of this kind.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{path}: no file of subgraphs ({error}); import the questions again") from error
        if table.schema.names != SCHEMA.names:
            raise DataError(f"{path}: columns {table.schema.names}, expected {SCHEMA.names}")
        self._table = table
        self._row = {id: row for row, id in enumerate(table.column("id").to_pylist())}

    def __len__(self) -> int:
        return len(self._row)

    def __getitem__(self, question: str) -> NDArray[np.int32]:
        """`[n, 3]` head, relation and tail of the question's triples, as indices of the store."""
        row = self._row[question]
        columns = [self._table.column(name)[row].values.to_numpy() for name in SCHEMA.names[1:]]
        return np.stack(columns, axis=1)


def convert(sources: Sequence[str | Path], out: str | Path, *, on_error: OnError = "fail") -> dict[str, Any]:
    """Writes the store, the question files and their subgraphs.

    Args:
        sources: files, folders or archives; the split stands in a file's name.

    Returns:
        What was read, skipped and why; that of the questions is also written beside them.

    Raises:
        DataError: a fault (with `on_error=fail`), or nothing to import.
    """
    importer = Format(tuple(map(Path, sources)))
    graph = import_graph(importer, Path(out) / "store", on_error=on_error)
    questions = convert_questions(importer, Path(out) / "store", Path(out) / "questions", on_error=on_error)
    return {"graph": graph.as_dict(), "questions": questions}


def convert_questions(
    importer: Format, store: Path, folder: Path, *, on_error: OnError = "fail"
) -> dict[str, Any]:
    """Writes the question files over a store that holds the importer's graph."""
    ids = KnowledgeGraph.open(store)
    entities, relations = Vocabulary(), Vocabulary()
    entities.add(ids.column("id"))
    relations.add(pa.array([ids.relation_id(r) for r in range(ids.num_relations)], type=pa.large_string()))
    tally = Tally(on_error)
    folder.mkdir(parents=True, exist_ok=True)
    splits: dict[str, Counter[str]] = {}
    for split in dict.fromkeys(SPLITS.values()):
        found = parts(importer.sources, split)
        count = Counter[str]()
        file = folder / f"{split}.subgraphs.arrow"
        partial = folder / f".{file.name}.partial"
        try:
            with pa.OSFile(str(partial), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
                convert_part = _Splitter(entities, relations, split, count, tally, writer)
                questions = convert_part.questions(track(found, f"questions of {split}"))
                first = next(questions, None)
                if first is not None:
                    write_questions(folder / f"{split}.jsonl", _chain(first, questions))
            if count["questions"]:
                partial.replace(file)
                splits[split] = count
        finally:
            partial.unlink(missing_ok=True)
    if not splits:
        raise DataError(
            f"{', '.join(map(str, importer.sources))}: no question found; {tally.as_dict()['skipped']}"
        )
    counts = {name: dict(count) for name, count in splits.items()}
    return write_report(folder, {"splits": counts, "entities": _kinds(ids), **tally.as_dict()})


def _chain(first: Question, rest: Iterator[Question]) -> Iterator[Question]:
    yield first
    yield from rest


class _Splitter:
    """Makes questions of one split, writing their subgraphs as it goes."""

    def __init__(
        self,
        entities: Vocabulary,
        relations: Vocabulary,
        split: str,
        count: Counter[str],
        tally: Tally,
        writer: Any,
    ) -> None:
        self.entities = entities
        self.relations = relations
        self.split = split
        self.count = count
        self.tally = tally
        self.writer = writer
        self.seen: set[str] = set()

    def questions(self, found: Iterator[Part]) -> Iterator[Question]:
        for part in found:
            asked = list(self._distinct(part))
            if not asked:
                continue
            graphs = self._encoded(asked)
            columns = [pa.array([one.id for one in asked])]
            columns += [pa.array([graph[:, i] for graph in graphs], type=INTS) for i in range(3)]
            self.writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
            for one, graph in zip(asked, graphs, strict=True):
                yield self._question(one, graph)

    def _distinct(self, part: Part) -> Iterator[Asked]:
        for asked in part.asked(self.tally):
            if asked.id in self.seen:
                self.tally.skip(part.source, asked.line, "repeated question id", asked.id[:80])
            else:
                self.seen.add(asked.id)
                yield asked

    def _encoded(self, asked: Sequence[Asked]) -> list[NDArray[np.int32]]:
        """`[n, 3]` for each question; steps that the store left out are left out."""
        steps = pa.concat_arrays([one.steps for one in asked])
        index = self.entities.find(steps).reshape(-1, 3)
        index[:, 1] = self.relations.find(steps.take(pa.array(np.arange(1, len(steps), 3))))
        ends = np.cumsum([len(one.steps) // 3 for one in asked])
        pieces = np.split(index, ends[:-1])
        return [piece[(piece >= 0).all(axis=1)] for piece in pieces]

    def _question(self, asked: Asked, graph: NDArray[np.int32]) -> Question:
        topics = self._indices(asked.topics)
        answers = self._indices(asked.answer_ids)
        distance = _distance(graph, topics[topics >= 0], answers[answers >= 0])
        self.count["questions"] += 1
        self.count["without a path"] += distance is None
        self.count["without answers"] += not asked.answers
        self.count["no topic in the graph"] += not (topics >= 0).any()
        self.count["no answer in the graph"] += not (answers >= 0).any()
        self.count["own triples"] += len(graph)
        known = [topic for topic, index in zip(asked.topics, topics, strict=True) if index >= 0]
        return Question(
            id=asked.id,
            text=asked.text,
            answers=asked.answers,
            answer_ids=asked.answer_ids,
            topic_entity=next(iter(known or asked.topics), None),
            hops=distance or None,
            split=self.split,
            tags=() if distance is not None else ("no_path",),
            meta={"topic_entities": list(asked.topics)} if len(asked.topics) > 1 else {},
        )

    def _indices(self, ids: tuple[str, ...]) -> NDArray[np.int32]:
        return self.entities.find(pa.array(ids, type=pa.large_string()))


def _distance(graph: NDArray[np.int32], topics: NDArray[np.int32], answers: NDArray[np.int32]) -> int | None:
    """Steps, either way round, from the nearest topic to an answer; None beyond `D_MAX`."""
    reached = topics
    head, tail = graph[:, 0], graph[:, 2]
    for steps in range(D_MAX + 1):
        if np.isin(reached, answers).any():
            return steps
        onward = tail[np.isin(head, reached)], head[np.isin(tail, reached)]
        grown = np.unique(np.concatenate([reached, *onward]))
        if len(grown) == len(reached):
            return None
        reached = grown
    return None


def _kinds(graph: KnowledgeGraph) -> dict[str, int]:
    """Entities that have no name in words."""
    ids = graph.column("id")
    counts = {
        name: int(pc.sum(pc.match_substring_regex(ids, pattern)).as_py() or 0)
        for name, pattern in (("unnamed", UNNAMED), ("literal", LITERAL))
    }
    return {"all": len(ids), **counts}
