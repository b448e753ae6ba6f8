"""Asks a system each question once and writes down what it said; a killed run goes on where it stopped.

Several processes share the batches, and the first one writes.
"""

from __future__ import annotations

import logging
import resource
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import xxhash

from vispath_lit.data.queries import to_query
from vispath_lit.errors import ConfigError, DataError, VisPathError
from vispath_lit.evaluation import metrics
from vispath_lit.evaluation.fingerprint import question_fingerprint
from vispath_lit.evaluation.own import check_rule
from vispath_lit.evaluation.records import Record, read_records, settled, to_line, write_records
from vispath_lit.evaluation.scoring import PredictionError, score
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.processes import gathered, is_first, shared, together
from vispath_lit.protocols import System, TextEncoder
from vispath_lit.types import Prediction, Query, Question

logger = logging.getLogger(__name__)
Usage = Callable[[], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What a system did on a list of questions.

    Attributes:
        records: one a question, in the order of the questions.
        chance: SBERT@0.3 of another question's answer.
        requests: every request sent, retries included; cache_hits: those that a cache answered.
        peak_rss_mb: the largest resident memory of a process so far.
    """

    system: str
    records: tuple[Record, ...]
    chance: float
    requests: int
    cache_hits: int
    peak_rss_mb: float
    peak_gpu_mb: float


def evaluate(
    system: System,
    questions: Sequence[Question],
    graph: KnowledgeGraph,
    text_encoder: TextEncoder,
    *,
    grant_start: bool = False,
    grant_depth: bool = False,
    batch_size: int = 32,
    predictions: Path | None = None,
    resume: bool = False,
    run_key: str = "",
    usage: Usage | None = None,
) -> Evaluation:
    """One record a question. Only the pictures of the current batch are open.

    With several processes all of them call this and get all records; a batch goes to one of them as it is, so
    that the records are the same as one process's.

    A question that cannot even be asked (a damaged picture, a granted start that the graph does not hold) is
    recorded as `failed` and counts as a miss; an error inside the system ends the run, and `resume`
    continues it.

    Args:
        grant_start: hand over the gold start entity ("given start").
        grant_depth: hand over the gold number of hops.
        batch_size: questions a call of the system.
        predictions: the JSONL to write; each batch is appended as soon as it is scored, and at the end
            the file is put into the order of the questions.
        resume: keep the lines of `predictions` that answer the same question under the same conditions,
            except `failed` ones.
        run_key: what else an answer depends on (fingerprints of config and checkpoint), part of each
            line's key.
        usage: the totals `requests` and `cache_hits` of the back ends so far; of a resumed run they count
            the last session only.

    Raises:
        ConfigError: no question, a batch size below 1, or a grant that no question can give.
        DataError: two questions of one id, a `scoring` that is no rule, or a predictions file that is none.
        PredictionError: the system broke its contract.
    """
    _check_questions(questions, grant_start=grant_start, grant_depth=grant_depth, batch_size=batch_size)
    conditions = (
        f"{run_key} {system.name} {graph.fingerprint} {text_encoder.fingerprint} {grant_start} {grant_depth}"
    )
    keys = {
        q.id: xxhash.xxh3_64_hexdigest(f"{conditions} {question_fingerprint(q)}".encode()) for q in questions
    }
    done = shared(_done(predictions, keys) if resume and is_first() else {})
    file = predictions if is_first() else None
    if file is not None:
        write_records(file, [done[q.id] for q in questions if q.id in done])
    before = Counter(usage() if usage else {})

    def work(batch: list[Question]) -> list[Record]:
        answers = ask(system, batch, graph, grant_start=grant_start, grant_depth=grant_depth)
        scored = score(batch, answers, [keys[q.id] for q in batch], graph, text_encoder)
        return [settled(record) for record in scored]

    todo = [q for q in questions if q.id not in done]
    batches = [todo[i : i + batch_size] for i in range(0, len(todo), batch_size)]
    for records in together(batches, work, f"{system.name}: {len(todo)} questions"):
        done |= {record.id: record for record in records}
        if file is not None:
            _append(file, records)
    ordered = tuple(done[q.id] for q in questions)
    if file is not None:
        write_records(file, ordered)
    used = Counter(usage() if usage else {})
    used.subtract(before)
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
    spent = gathered((used["requests"], used["cache_hits"], _peak_rss_mb(), gpu))
    return Evaluation(
        system=system.name,
        records=ordered,
        chance=metrics.sbert_chance([record.gold.answers for record in ordered], text_encoder),
        requests=sum(one[0] for one in spent),
        cache_hits=sum(one[1] for one in spent),
        peak_rss_mb=max(one[2] for one in spent),
        peak_gpu_mb=max(one[3] for one in spent),
    )


def _check_questions(
    questions: Sequence[Question], *, grant_start: bool, grant_depth: bool, batch_size: int
) -> None:
    if not questions:
        raise ConfigError("no questions to evaluate; choose a split that has some (data.split)")
    if batch_size < 1:
        raise ConfigError(f"batch_size={batch_size}; expected at least 1")
    if grant_start and all(q.topic_entity is None for q in questions):
        raise ConfigError(
            "the start is to be granted, but no question has a topic_entity; drop that protocol"
        )
    if grant_depth and all(q.hops is None for q in questions):
        raise ConfigError("the depth is to be granted, but no question has hops; drop that protocol")
    for question in questions:
        check_rule(question)  # A run's hours must not end at the one question whose rule is malformed.
    twice = [id for id, count in Counter(q.id for q in questions).items() if count > 1]
    if twice:
        raise DataError(f"{len(twice)} question ids occur twice, first {twice[0]!r}; give each its own id")


def _done(file: Path | None, keys: Mapping[str, str]) -> dict[str, Record]:
    """The lines of an earlier run that still hold, by question id."""
    if file is None or not file.is_file():
        return {}
    records = read_records(file)
    same = {record.id: record for record in records if keys.get(record.id) == record.key}
    if len(same) < len(records):
        logger.warning(
            "%s: %d of %d lines belong to other questions, another graph, system or protocol; dropped",
            file.name,
            len(records) - len(same),
            len(records),
        )
    failed = [id for id, record in same.items() if record.provenance == "failed"]
    if failed:
        logger.info("%s: %d failed questions are asked again", file.name, len(failed))
    return {id: record for id, record in same.items() if record.provenance != "failed"}


def ask(
    system: System,
    batch: Sequence[Question],
    graph: KnowledgeGraph,
    *,
    grant_start: bool = False,
    grant_depth: bool = False,
) -> list[Prediction]:
    """One prediction a question; one that cannot be asked is `failed`, with the reason as statement."""
    asked: dict[int, Query] = {}
    failed: dict[int, Prediction] = {}
    for i, question in enumerate(batch):
        try:
            asked[i] = to_query(question, graph, grant_start=grant_start, grant_depth=grant_depth)
        except VisPathError as error:
            logger.warning("question %s cannot be asked and counts as a miss: %s", question.id, error)
            failed[i] = Prediction("", None, "failed", statement=str(error))
    given = system.answer(list(asked.values())) if asked else []
    if len(given) != len(asked):
        raise PredictionError(
            f"{system.name} gave {len(given)} predictions for {len(asked)} questions: expected one each."
        )
    answers = failed | dict(zip(asked, given, strict=True))
    return [answers[i] for i in range(len(batch))]


def _append(file: Path, records: Sequence[Record]) -> None:
    with file.open("a", encoding="utf8", errors="replace", newline="\n") as out:
        out.write("".join(to_line(record) + "\n" for record in records))


def _peak_rss_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # Bytes on macOS, kilobytes elsewhere.
