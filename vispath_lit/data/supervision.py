"""Accepted paths of each question: its gold paths, else weak paths between topic and answers.

Positives at a hop are every edge on some accepted path with the same prefix, so that training is
listwise with several positives. Explicit gold paths are used as they are, with weight 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.weak_cache import weak_paths
from vispath_lit.data.weak_paths import Found, WeakPathFinder
from vispath_lit.errors import DataError, UnknownEntityError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.types import GoldPath, Question

PAD = -1
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class AcceptedPaths:
    """The n accepted paths of one question, padded to their longest length D.

    Attributes:
        start: the topic's entity index.
        relations: `[n, D]` signed relations, -1 beyond a path's end.
        tails: `[n, D]` entity indices, -1 beyond a path's end.
        weights: `[n]` in (0, 1]: 1 for gold, the precision for weak paths.
        hops: the depth to predict: the question's own, else the length of its best path.
    """

    start: int
    relations: Ints
    tails: Ints
    weights: NDArray[np.float32]
    hops: int
    source: Literal["gold", "weak"]

    @property
    def longest(self) -> int:
        """D, the length of the longest accepted path."""
        return int(self.relations.shape[1])

    def follow(self, relations: Sequence[int], tails: Sequence[int]) -> NDArray[np.bool_]:
        """`[n]`: whether a path begins with these steps and goes on after them."""
        length = len(relations)
        if length >= self.longest:
            return np.zeros(len(self.weights), dtype=bool)
        same = (self.relations[:, :length] == relations) & (self.tails[:, :length] == tails)
        result: NDArray[np.bool_] = same.all(axis=1) & (self.relations[:, length] != PAD)
        return result

    def next_steps(self, relations: Sequence[int], tails: Sequence[int]) -> list[tuple[int, int, float]]:
        """The accepted (relation, tail, weight) after a prefix; a shared step has its greatest weight."""
        length = len(relations)
        steps: dict[tuple[int, int], float] = {}
        for row in np.flatnonzero(self.follow(relations, tails)):
            step = (int(self.relations[row, length]), int(self.tails[row, length]))
            steps[step] = max(steps.get(step, 0.0), float(self.weights[row]))
        return [(relation, tail, weight) for (relation, tail), weight in steps.items()]

    def prefixes(self, length: int) -> list[tuple[tuple[int, ...], tuple[int, ...], float]]:
        """Distinct (relations, tails, weight) of accepted prefixes that go on after `length` steps."""
        found: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        if length < self.longest:
            for row in np.flatnonzero(self.relations[:, length] != PAD):
                key = tuple(self.relations[row, :length].tolist()), tuple(self.tails[row, :length].tolist())
                found[key] = max(found.get(key, 0.0), float(self.weights[row]))
        return [(relations, tails, weight) for (relations, tails), weight in found.items()]


@dataclass(frozen=True, slots=True)
class SupervisionReport:
    """What became of the questions; the counts add up to `questions`.

    Attributes:
        gold: with explicit gold paths.
        weak: with weak paths.
        unreachable: no path from topic to an answer within D_max.
        too_large: the search for weak paths was given up at its bound.
        unsupervised: neither gold paths nor both topic and answer ids.
        skipped: gold paths, a topic or no answer that the graph holds (`on_error="skip"`).
        problems: what was wrong with the first skipped questions.
    """

    questions: int
    gold: int = 0
    weak: int = 0
    unreachable: int = 0
    too_large: int = 0
    unsupervised: int = 0
    skipped: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Supervision:
    """The questions that can be trained on, each with its accepted paths, and what became of the others.

    Attributes:
        without: the name of a count of the report to the ids of its questions, for those that have no path.
    """

    questions: tuple[Question, ...]
    accepted: tuple[AcceptedPaths, ...]
    report: SupervisionReport
    without: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.questions)


def supervise(
    graph: KnowledgeGraph,
    questions: Sequence[Question],
    *,
    d_max: int = 4,
    max_paths: int = 64,
    max_edges: int = 5_000_000,
    inverse: bool = True,
    on_error: Literal["fail", "skip"] = "fail",
    cache_dir: Path | None = None,
    workers: int | None = 1,
) -> Supervision:
    """Accepted paths for every question that has gold paths, or a topic and answers with ids.

    Args:
        d_max: weak paths have at most this many hops.
        max_paths: weak paths kept a question, the most precise first.
        max_edges: edges looked at for one question before its weak paths are given up.
        inverse: weak paths may walk a triple backwards.
        on_error: `fail` raises at the first question that does not fit the graph. `skip` goes on without the
            answers that the graph does not hold, and counts a question without any other or a topic there.
        cache_dir: where weak paths are kept; None keeps none.
        workers: processes that look for weak paths; None for one a core where that is faster.

    Raises:
        DataError: names the question and what the graph does not hold.
    """
    outcomes: list[AcceptedPaths | str] = []
    weak: list[tuple[int, int, Ints]] = []
    problems = []
    for i, question in enumerate(track(questions, "accepted paths")):
        try:
            found = _accept(graph, question, on_error)
        except DataError as error:
            if on_error == "fail":
                raise
            found = "skipped"
            problems.append(str(error))
        if isinstance(found, tuple):
            weak.append((i, *found))
        outcomes.append("unreachable" if isinstance(found, tuple) else found)
    finder = WeakPathFinder(graph, d_max, max_paths, max_edges, inverse)
    paths = weak_paths(finder, [(start, answers) for _, start, answers in weak], cache_dir, workers)
    for (i, start, _), walks in zip(weak, paths, strict=True):
        outcomes[i] = walks if isinstance(walks, str) else _weak(start, walks, questions[i].hops)
    return _summed(questions, outcomes, problems)


def _summed(
    questions: Sequence[Question], outcomes: Sequence[AcceptedPaths | str], problems: Sequence[str]
) -> Supervision:
    counts: dict[str, int] = {}
    without: dict[str, list[str]] = {}
    kept, accepted = [], []
    for question, found in zip(questions, outcomes, strict=True):
        outcome = found if isinstance(found, str) else found.source
        counts[outcome] = counts.get(outcome, 0) + 1
        if isinstance(found, AcceptedPaths):
            kept.append(question)
            accepted.append(found)
        else:
            without.setdefault(found, []).append(question.id)
    report = SupervisionReport(len(questions), **counts, problems=tuple(problems[:20]))
    lost = {name: tuple(ids) for name, ids in without.items()}
    return Supervision(tuple(kept), tuple(accepted), report, lost)


def _accept(
    graph: KnowledgeGraph, question: Question, on_error: Literal["fail", "skip"]
) -> AcceptedPaths | tuple[int, Ints] | str:
    """Accepted paths, or the (start, answers) to look for paths between, or the count for none."""
    if question.topic_entity is None or not (question.gold_paths or question.answer_ids):
        return "unsupervised"
    start = _entity(graph, question, question.topic_entity)
    if question.gold_paths:
        paths = [_steps(graph, question, start, path) for path in question.gold_paths]
        return _pack(start, paths, [1.0] * len(paths), question.hops, "gold")
    answers = graph.entity_indices(question.answer_ids)
    known = answers[answers >= 0].astype(np.int64)
    if not len(known) or (on_error == "fail" and len(known) < len(answers)):
        for answer in question.answer_ids:
            _entity(graph, question, answer)
    return start, known


def _weak(start: int, walks: Found, hops: int | None) -> AcceptedPaths:
    return _pack(start, [path for path, _ in walks], [weight for _, weight in walks], hops, "weak")


def _pack(
    start: int,
    paths: Sequence[Sequence[tuple[int, int]]],
    weights: Sequence[float],
    hops: int | None,
    source: Literal["gold", "weak"],
) -> AcceptedPaths:
    longest = max(len(path) for path in paths)
    relations = np.full((len(paths), longest), PAD, dtype=np.int64)
    tails = np.full((len(paths), longest), PAD, dtype=np.int64)
    for row, path in enumerate(paths):
        relations[row, : len(path)] = [relation for relation, _ in path]
        tails[row, : len(path)] = [tail for _, tail in path]
    best = min(range(len(paths)), key=lambda row: (-weights[row], len(paths[row])))
    return AcceptedPaths(
        start, relations, tails, np.array(weights, dtype=np.float32), hops or len(paths[best]), source
    )


def _entity(graph: KnowledgeGraph, question: Question, name: str) -> int:
    try:
        return graph.entity_index(name)
    except UnknownEntityError as error:
        raise DataError(
            f"question {question.id!r}: entity {name!r} is not in the graph; "
            "give an id of entities.tsv, or say on_error=skip to leave such questions out"
        ) from error


def _steps(graph: KnowledgeGraph, question: Question, start: int, path: GoldPath) -> list[tuple[int, int]]:
    """A gold path as (signed relation, tail) steps, each checked to be an edge of the graph."""
    if not path:
        raise DataError(
            f"question {question.id!r}: an empty gold path; give at least one [relation, entity] step"
        )
    return list(_walk(graph, question, start, path))


def _walk(graph: KnowledgeGraph, question: Question, start: int, path: GoldPath) -> Iterator[tuple[int, int]]:
    here = start
    for name, target in path:
        try:
            relation = graph.relation_index(name)
        except UnknownEntityError as error:
            raise DataError(
                f"question {question.id!r}: relation {name!r} of a gold path is not in the graph; "
                "give an id of relations.tsv, with ~ before it for an inverse step"
            ) from error
        tail = _entity(graph, question, target)
        if not has_edge(graph, here, relation, tail):
            raise DataError(
                f"question {question.id!r}: the gold step {graph.entity_id(here)!r} {name!r} {target!r} "
                "is not an edge of the graph; mend the path, or say on_error=skip to leave such questions out"
            )
        yield relation, tail
        here = tail


def has_edge(graph: KnowledgeGraph, head: int, relation: int, tail: int) -> bool:
    """Whether the graph holds the step; binary search, as rows are sorted by relation, then tail."""
    backwards = relation >= graph.num_relations
    indptr = graph.in_indptr if backwards else graph.out_indptr
    relations = graph.in_relation if backwards else graph.out_relation
    tails = graph.in_tail if backwards else graph.out_tail
    begin, end = int(indptr[head]), int(indptr[head + 1])
    stored = relation - graph.num_relations if backwards else relation
    low = begin + int(np.searchsorted(relations[begin:end], stored, side="left"))
    high = begin + int(np.searchsorted(relations[begin:end], stored, side="right"))
    place = low + int(np.searchsorted(tails[low:high], tail))
    return place < high and int(tails[place]) == tail
