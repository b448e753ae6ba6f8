"""Weak paths: a batch against a slow search for each question alone, bounds, processes and the cache."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vispath_lit.data import endpoints, shortest
from vispath_lit.data.endpoints import Endpoints
from vispath_lit.data.weak_cache import Asked, weak_paths
from vispath_lit.data.weak_paths import Found, WeakPathFinder
from vispath_lit.errors import ConfigError
from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph

N, R = 9, 3
Triple = tuple[int, int, int]
MakeGraph = Callable[[int, int, Iterable[Triple]], KnowledgeGraph]
TRIPLES = st.sets(
    st.tuples(st.integers(0, N - 1), st.integers(0, R - 1), st.integers(0, N - 1)), min_size=1, max_size=25
)
ASKED = st.lists(
    st.tuples(st.integers(0, N - 1), st.sets(st.integers(0, N - 1), max_size=3)), min_size=1, max_size=6
)


def slow(graph: KnowledgeGraph, start: int, answers: set[int], d_max: int, inverse: bool) -> Found | str:
    """Every walk, hop by hop, in the order of signed relations and tails, until some end in an answer."""
    answers = answers - {start}
    walks: list[list[tuple[int, int]]] = [[]]
    for _ in range(d_max):
        walks = [
            [*walk, (relation, int(tail))]
            for walk in walks
            for relation in range(R * (1 + inverse))
            for tail in follow(graph, walk[-1][1] if walk else start, [relation])
        ]
        found: Found = []
        for walk in walks:
            if walk[-1][1] in answers:
                ends = set(follow(graph, start, [relation for relation, _ in walk]).tolist())
                found.append((walk, len(ends & answers) / len(ends)))
        if found:
            return sorted(found, key=lambda path: -path[1])
    return "unreachable"


def array(values: set[int]) -> Asked:
    return 0, np.array(sorted(values), dtype=np.int64)


@given(triples=TRIPLES, asked=ASKED, inverse=st.booleans(), block=st.sampled_from([1, 5, 1 << 22]))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_batch_equals_a_slow_search_for_each(
    make_graph: MakeGraph,
    monkeypatch: pytest.MonkeyPatch,
    triples: set[Triple],
    asked: list[tuple[int, set[int]]],
    inverse: bool,
    block: int,
) -> None:
    monkeypatch.setattr(shortest, "BLOCK", block)
    monkeypatch.setattr(endpoints, "BLOCK", block)
    graph = make_graph(N, R, sorted(triples))
    finder = WeakPathFinder(graph, 3, 10_000, 1_000_000, inverse)
    found = finder.find_all([(start, array(answers)[1]) for start, answers in asked])
    assert found == [slow(graph, start, answers, 3, inverse) for start, answers in asked]


@given(
    triples=TRIPLES,
    asked=st.lists(
        st.tuples(
            st.integers(0, N - 1),
            st.tuples(st.integers(0, 2 * R - 1), st.integers(0, 2 * R - 1), st.integers(0, 5)),
        ),
        min_size=1,
        max_size=8,
    ),
)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ends_are_counted_as_if_followed_one_by_one(
    make_graph: MakeGraph, triples: set[Triple], asked: list[tuple[int, tuple[int, int, int]]]
) -> None:
    graph = make_graph(N, R, sorted(triples))
    starts, sequences = np.array([s for s, _ in asked]), np.array([r for _, r in asked])
    for length in (1, 2, 3):
        found = Endpoints(graph, 1_000_000).count(starts, sequences[:, :length])
        wanted = [len(follow(graph, s, r[:length])) for s, r in asked]
        assert found.tolist() == wanted


def test_a_sequence_beyond_the_bound_counts_with_all_its_edges(make_graph: MakeGraph) -> None:
    """Entity 0 leads to 1, 2, 3; each of them to 4 and 5: six edges, two ends."""
    triples = [(0, 0, i) for i in (1, 2, 3)] + [(i, 1, j) for i in (1, 2, 3) for j in (4, 5)]
    graph = make_graph(8, 2, [*triples, (4, 0, 6), (5, 0, 6)])
    two, three = np.array([[0, 1]]), np.array([[0, 1, 0]])
    start = np.array([0])
    assert Endpoints(graph, 6).count(start, two).tolist() == [2]
    assert Endpoints(graph, 5).count(start, two).tolist() == [6]
    assert Endpoints(graph, 6).count(start, three).tolist() == [1]
    assert Endpoints(graph, 5).count(start, three).tolist() == [6]


def test_paths_beyond_the_limit_are_cut_but_weighed_by_all(make_graph: MakeGraph) -> None:
    """Of 40 x 2 walks with one relation sequence to two answers, one is kept and its precision is still 1."""
    triples = [(0, 0, i) for i in range(1, 41)] + [(i, 1, j) for i in range(1, 41) for j in (41, 42)]
    graph = make_graph(43, 2, triples)
    both = np.array([41, 42])
    finder = WeakPathFinder(graph, 2, 1, 1_000_000, False)
    assert finder.find(0, both) == [([(0, 1), (1, 41)], 1.0)]
    assert finder.find(0, both[:1]) == [([(0, 1), (1, 41)], 0.5)]


@pytest.fixture
def ring(make_graph: MakeGraph) -> KnowledgeGraph:
    """Forty entities in a ring by relation 0, with chords by relation 1."""
    triples = [(i, 0, (i + 1) % 40) for i in range(40)] + [(i, 1, (7 * i + 3) % 40) for i in range(40)]
    return make_graph(40, 2, triples)


def questions() -> list[Asked]:
    rng = np.random.default_rng(0)
    return [(int(rng.integers(40)), rng.integers(0, 40, size=2)) for _ in range(50)]


def test_processes_and_cache_change_no_result(ring: KnowledgeGraph, tmp_path: Path) -> None:
    finder = WeakPathFinder(ring, 3, 64, 1_000_000, True)
    wanted = [finder.find(start, answers) for start, answers in questions()]
    assert {type(one) for one in wanted} == {str, list}
    assert weak_paths(finder, questions(), tmp_path, workers=2) == wanted
    (file,) = (tmp_path / "weak_paths").iterdir()
    before = file.stat().st_mtime_ns
    assert weak_paths(finder, questions(), tmp_path) == wanted
    assert file.stat().st_mtime_ns == before
    reordered = [(start, answers[::-1]) for start, answers in questions()]
    weak_paths(finder, reordered, tmp_path)
    assert len(list((tmp_path / "weak_paths").iterdir())) == 1
    weak_paths(finder, questions()[1:], tmp_path)
    weak_paths(WeakPathFinder(ring, 2, 64, 1_000_000, True), questions(), tmp_path)
    assert len(list((tmp_path / "weak_paths").iterdir())) == 3


@pytest.mark.parametrize("damage", ["empty", "cut", "weights", "tails", "counts", "missing"])
def test_a_damaged_cache_is_made_anew(ring: KnowledgeGraph, tmp_path: Path, damage: str) -> None:
    finder = WeakPathFinder(ring, 3, 64, 1_000_000, True)
    wanted = weak_paths(finder, questions(), tmp_path)
    (file,) = (tmp_path / "weak_paths").iterdir()
    whole = file.read_bytes()
    with np.load(file) as kept:
        arrays = dict(kept)
    if damage in ("empty", "cut"):
        file.write_bytes(b"" if damage == "empty" else whole[: len(whole) // 2])
    elif damage == "missing":
        with zipfile.ZipFile(file, "w"):
            pass
    else:
        arrays["weight"][0] = np.nan if damage == "weights" else arrays["weight"][0]
        arrays["tail"][0] = 40 if damage == "tails" else arrays["tail"][0]
        arrays["paths"][0] += damage == "counts"
        np.savez(file, **arrays)
    assert weak_paths(finder, questions(), tmp_path) == wanted
    assert file.read_bytes() == whole


def test_a_cache_that_cannot_be_written_costs_no_result(ring: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "weak_paths").write_text("a file in the folder's place")
    finder = WeakPathFinder(ring, 3, 64, 1_000_000, True)
    assert weak_paths(finder, questions(), tmp_path) == finder.find_all(questions())


def test_no_worker_is_refused(ring: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match="weak_workers is 0"):
        weak_paths(WeakPathFinder(ring, 3, 64, 1_000_000, True), questions(), workers=0)
