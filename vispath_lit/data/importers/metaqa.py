"""The questions of MetaQA, with gold paths from their types, as question files over the imported graph.

    N-hop/vanilla/qa_train.txt      who directed [Heat]<TAB>answer|another answer
    N-hop/qa_train_qtype.txt        movie_to_director: a line a question

A type names the kinds of entities on the path; each pair of kinds is one relation, walked forwards from a
movie and backwards to it. All walks of these relations that end in a listed answer are gold.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from vispath_lit.data.importers.files import write_report
from vispath_lit.data.questions import write_questions
from vispath_lit.errors import DataError
from vispath_lit.kg.faults import OnError
from vispath_lit.kg.importers.metaqa import KB, MOVIE, TYPES, Format
from vispath_lit.kg.staging.lines import fields
from vispath_lit.kg.staging.run import import_graph
from vispath_lit.kg.staging.streams import Block, base_name, walk
from vispath_lit.kg.staging.tally import Tally
from vispath_lit.types import GoldPath, Question

SPLITS = {"train": "train", "dev": "val", "test": "test"}
QUESTIONS = re.compile(r"(?:^|/)([123])-?hop/(?:(\w+)/)?qa_(train|dev|test)(_qtype)?\.txt$")
TOPIC = re.compile(r"\[([^\[\]]+)\]")
MAX_WALKS = 10_000  # Walks of one type looked at for one question.
MAX_PATHS = 64  # Gold paths kept a question.
RELATIONS = {kind: relation for relation, kind in TYPES.items()} | {"tag": "has_tags"}
Successors = Mapping[tuple[str, str], Sequence[str]]


def convert(
    source: str | Path,
    out: str | Path,
    *,
    hops: Sequence[int] = (1, 2, 3),
    variant: str = "vanilla",
    on_error: OnError = "fail",
) -> dict[str, Any]:
    """Writes `OUT/store` and `OUT/questions/{train,val,test}.jsonl`.

    Args:
        source: the published folder, or an archive of it.
        hops: of the questions to take.
        variant: `vanilla` or `ntm`.

    Returns:
        What was read, skipped and why; also written to `OUT/questions/report.json`.

    Raises:
        DataError: a fault (with `on_error=fail`), or files that are missing.
    """
    importer = Format((Path(source),))
    graph = import_graph(importer, Path(out) / "store", on_error=on_error)
    questions = convert_questions(
        importer, Path(out) / "store", Path(out) / "questions", hops=hops, variant=variant, on_error=on_error
    )
    return {"graph": graph.as_dict(), "questions": questions}


def convert_questions(
    importer: Format,
    store: Path,
    folder: Path,
    *,
    hops: Sequence[int] = (1, 2, 3),
    variant: str = "vanilla",
    on_error: OnError = "fail",
) -> dict[str, Any]:
    """Writes the question files alone; they are made from the published facts, `store` is not read."""
    files = _Files(Tally(on_error), tuple(hops), variant)
    for source in importer.sources:
        files.read(source)
    successors = files.successors()
    if not files.texts:
        raise DataError(
            f"{', '.join(map(str, importer.sources))}: no questions; expected files such as "
            f"1-hop/{variant}/qa_train.txt beside {KB}"
        )
    counts: dict[str, dict[str, int]] = {}
    for split, name in SPLITS.items():
        found = [(hop, part) for hop, part in sorted(files.texts) if part == split]
        if found:
            count = counts[name] = Counter[str]()
            parts = (_questions(files, hop, split, successors, count) for hop, _ in found)
            write_questions(folder / f"{name}.jsonl", (question for part in parts for question in part))
    return write_report(folder, {"splits": counts, **files.tally.as_dict()})


@dataclass(slots=True)
class _Files:
    """The published files, parsed: facts, and by hops and split the lines of questions and their types."""

    tally: Tally
    hops: tuple[int, ...]
    variant: str
    facts: list[tuple[str, str, str]] = field(default_factory=list)
    texts: dict[tuple[int, str], list[tuple[str, int, str, str]]] = field(default_factory=dict)
    types: dict[tuple[int, str], list[str]] = field(default_factory=dict)

    def read(self, source: Path) -> None:
        for member in walk(source):
            found = QUESTIONS.search(member.name)
            if base_name(member.name) == KB:
                for block in member.blocks():
                    columns = [c.to_pylist() for c in fields(block, 3, Tally("skip"), "|").columns]
                    self.facts += zip(*columns, strict=True)  # Faults were counted with the graph.
            elif found and int(found[1]) in self.hops:
                key = (int(found[1]), found[3])
                for block in member.blocks():
                    if found[4]:  # A line each, blank ones too: a question is found by its line.
                        lines = block.data.decode("utf8", "replace").split("\n")[:-1]
                        self.types.setdefault(key, []).extend(map(str.strip, lines))
                    elif found[2] in (None, self.variant):
                        self._take(key, block)

    def _take(self, key: tuple[int, str], block: Block) -> None:
        rows = fields(block, 2, self.tally)
        texts, answers = (column.to_pylist() for column in rows.columns)
        lines = [int(line) for line in rows.lines]
        sources = [rows.source] * len(lines)
        self.texts.setdefault(key, []).extend(zip(sources, lines, texts, answers, strict=True))

    def successors(self) -> Successors:
        found: dict[tuple[str, str], list[str]] = defaultdict(list)
        for subject, relation, tail in dict.fromkeys(self.facts):
            found[subject, relation].append(tail)
            found[tail, f"~{relation}"].append(subject)
        return found


def _questions(
    files: _Files, hop: int, split: str, successors: Successors, count: Counter[str]
) -> Iterator[Question]:
    """The questions of one file. Those without topic or type in the graph are kept, and counted."""
    known = {entity for entity, _ in successors}
    types = files.types.get((hop, split))
    for source, line, text, listed in files.texts[hop, split]:
        if types is not None and line > len(types):
            raise DataError(
                f"{source}: line {line} has no type; qa_{split}_qtype.txt ends at line {len(types)}"
            )
        topics = TOPIC.findall(text)
        answers = tuple(dict.fromkeys(answer for answer in listed.split("|") if answer.strip()))
        if len(topics) != 1 or not answers:
            found = f"{len(topics)} [topics] and {len(answers)} answers in {text[:80]!r}"
            files.tally.skip(source, line, "no question with one [topic] and answers", found)
            continue
        relations = _relations(types[line - 1], hop) if types is not None else None
        gold = _gold(topics[0], relations, answers, successors) if relations else ()
        count["questions"] += 1
        count["without gold path"] += not gold
        count["topic not in the graph"] += topics[0] not in known
        count["an answer not in the graph"] += any(answer not in known for answer in answers)
        yield Question(
            id=f"metaqa-{hop}h-{SPLITS[split]}-{line}",
            text=text.replace("[", "").replace("]", "").strip(),
            answers=answers,
            answer_ids=answers,
            topic_entity=topics[0],
            gold_paths=gold,
            hops=hop,
            split=SPLITS[split],
            tags=(f"{hop}-hop",),
            meta={"qtype": types[line - 1]} if types is not None else {},
        )


def _relations(qtype: str, hop: int) -> list[str] | None:
    """`movie_to_director_to_movie` as `directed_by`, `~directed_by`; None where it is no such path."""
    kinds = qtype.split("_to_")
    found = []
    for here, there in pairwise(kinds):
        if here == MOVIE and there in RELATIONS:
            found.append(RELATIONS[there])
        elif there == MOVIE and here in RELATIONS:
            found.append(f"~{RELATIONS[here]}")
        else:
            return None
    return found if len(found) == hop else None


def _gold(
    start: str, relations: Sequence[str], answers: Sequence[str], successors: Successors
) -> tuple[GoldPath, ...]:
    accepted = set(answers)
    walks = islice(_walks(start, relations, successors), MAX_WALKS)
    return tuple(islice((walk for walk in walks if walk[-1][1] in accepted), MAX_PATHS))


def _walks(start: str, relations: Sequence[str], successors: Successors) -> Iterator[GoldPath]:
    if not relations:
        yield ()
        return
    for entity in successors.get((start, relations[0]), ()):
        for rest in _walks(entity, relations[1:], successors):
            yield ((relations[0], entity), *rest)
