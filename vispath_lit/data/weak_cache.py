"""Weak paths of many questions, found by several processes and kept on disk by the content they depend on."""

from __future__ import annotations

import logging
import math
import multiprocessing
import os
import zipfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from pathlib import Path

import numpy as np
import xxhash
from numpy.typing import NDArray

from vispath_lit.data.weak_paths import Found, WeakPathFinder
from vispath_lit.errors import ConfigError, VisPathError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.whole import NO_ARRAY, whole_file

log = logging.getLogger(__name__)
Asked = tuple[int, NDArray[np.int64]]
VERSION = 1  # Of what is found and how it is kept; another one is found anew.
OUTCOMES = ("found", "unreachable", "too_large")
WORTH_A_PROCESS = 10_000  # Questions; starting a process takes as long as some thousands of them.
ROUND = 4  # Batches of one task of a process.


def weak_paths(
    finder: WeakPathFinder, asked: Sequence[Asked], cache_dir: Path | None = None, workers: int | None = 1
) -> list[Found | str]:
    """`finder.find` for each (start, answers), in order.

    Args:
        cache_dir: where results are kept; None keeps none. A damaged file is made anew.
        workers: processes; None for one a core, but no more than have 10,000 questions each. The number
            changes no result.

    Raises:
        ConfigError: workers below 1.
        VisPathError: a process that was ended from outside.
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"weak_workers is {workers}; expected at least 1, or null for one a core")
    if not asked:
        return []
    file = None if cache_dir is None else cache_dir / "weak_paths" / f"{_key(finder, asked)}.npz"
    if file is not None and file.is_file():
        try:
            return _read(file, finder, len(asked))
        except (KeyError, OSError, zipfile.BadZipFile, *NO_ARRAY) as error:
            log.warning("%s is damaged (%s); the weak paths are found again", file, error)
    size = ROUND * finder.batch
    parts = [asked[first : first + size] for first in range(0, len(asked), size)]
    processes = workers or min(os.cpu_count() or 1, max(1, len(asked) // WORTH_A_PROCESS))
    results = _computed(finder, parts, min(processes, len(parts)))
    found = [one for part in track(results, "weak paths", total=len(parts)) for one in part]
    if file is not None:
        try:
            _write(file, found)
        except OSError as error:
            log.warning("%s cannot be written (%s); the weak paths are not kept", file, error.strerror)
    return found


def _computed(
    finder: WeakPathFinder, parts: Sequence[Sequence[Asked]], processes: int
) -> Iterator[list[Found | str]]:
    if processes <= 1:
        yield from map(finder.find_all, parts)
        return
    settings = {one.name: getattr(finder, one.name) for one in fields(finder) if one.name != "graph"}
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(
            processes, context, initializer=_open, initargs=(finder.graph.path, settings)
        ) as pool:
            yield from pool.map(_find, parts)
    except BrokenProcessPool as error:
        raise VisPathError(
            "a process that looked for weak paths was ended from outside, by lack of memory most likely; say "
            "training.weak_workers=1"
        ) from error


_own: list[WeakPathFinder] = []  # Of a worker process.


def _open(path: Path, settings: dict[str, int]) -> None:
    _own[:] = [WeakPathFinder(KnowledgeGraph.open(path), **settings)]  # type: ignore[arg-type]


def _find(part: Sequence[Asked]) -> list[Found | str]:
    return _own[0].find_all(part)


def _key(finder: WeakPathFinder, asked: Sequence[Asked]) -> str:
    key = xxhash.xxh3_128()
    settings = {one.name: getattr(finder, one.name) for one in fields(finder) if one.name != "graph"}
    key.update(f"{VERSION} {finder.graph.fingerprint} {sorted(settings.items())}\n".encode())
    for start, answers in asked:
        key.update(np.array([start, len(answers), *np.sort(answers)], dtype=np.int64).tobytes())
    return key.hexdigest()


def _write(file: Path, found: Sequence[Found | str]) -> None:
    paths = [path for one in found if not isinstance(one, str) for path in one]
    steps = [step for walk, _ in paths for step in walk]
    with whole_file(file) as partial, partial.open("wb") as out:
        np.savez(
            out,
            outcome=np.array([OUTCOMES.index(o) if isinstance(o, str) else 0 for o in found], np.uint8),
            paths=np.array([0 if isinstance(one, str) else len(one) for one in found], np.int64),
            hops=np.array([len(walk) for walk, _ in paths], np.int64),
            relation=np.array([relation for relation, _ in steps], np.int32),
            tail=np.array([tail for _, tail in steps], np.int32),
            weight=np.array([weight for _, weight in paths], np.float64),
        )


def _read(file: Path, finder: WeakPathFinder, count: int) -> list[Found | str]:
    """What `_write` wrote.

    Raises:
        ValueError: what no search of this graph can have found.
    """
    with np.load(file, allow_pickle=False) as kept:  # Each array has a checksum in the archive.
        outcome, many, hops = kept["outcome"], kept["paths"], kept["hops"]
        relation, tail, weight = kept["relation"], kept["tail"], kept["weight"]
    graph = finder.graph
    whole = (
        outcome.shape == many.shape == (count,)
        and hops.shape == weight.shape == (int(many.sum()),)
        and relation.shape == tail.shape == (int(hops.sum()),)
        and bool(((many > 0) == (outcome == 0)).all() and (hops > 0).all() and (outcome < 3).all())
    )
    if not whole:
        raise ValueError("its arrays do not fit together")
    inside = [(relation, 2 * graph.num_relations), (tail, graph.num_entities)]
    if any(len(values) and not 0 <= values.min() <= values.max() < high for values, high in inside):
        raise ValueError("it names entities or relations that the graph does not have")
    if not all(0 < one <= 1 and math.isfinite(one) for one in weight.tolist()):
        raise ValueError("it holds weights outside (0, 1]")
    steps = iter(zip(relation.tolist(), tail.tolist(), strict=True))
    paths = iter(
        [
            ([next(steps) for _ in range(n)], one)
            for n, one in zip(hops.tolist(), weight.tolist(), strict=True)
        ]
    )
    return [
        OUTCOMES[kind] if kind else [next(paths) for _ in range(n)]
        for kind, n in zip(outcome.tolist(), many.tolist(), strict=True)
    ]
