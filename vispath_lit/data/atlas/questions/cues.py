"""Questions whose picture decides a hop: an arrow selects a border, a colour strip selects a neighbour.

Recognising the cue alone answers neither. The arrow names a direction, so one of A's border relations;
the strip names a palette that four or more countries share, of which only one borders A.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from vispath_lit.data.atlas.flags import COLOURS
from vispath_lit.data.atlas.questions.pictures import Arrow, Strip
from vispath_lit.data.atlas.questions.starts import POOLS, Starts, pool_of
from vispath_lit.data.bench.select import Pick
from vispath_lit.data.bench.walks import Walks
from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph

Mode = Literal["arrow", "strip"]
MODES: tuple[Mode, ...] = ("arrow", "strip")

EDGE_DISTANCE = 10.0
"""An arrow points at least this many degrees away from the edge of its sector."""

SHARERS = 4
"""Countries that a strip's palette fits, at least."""

OUTLINE = "outline"
ON_OUTLINE = "city_locator"
"""The kind of picture that shows a country, and the kind that shows a place on the same outline."""


@dataclass(frozen=True, slots=True)
class Cues:
    """What may be drawn: (A, B) to the cue that selects B among A's neighbours."""

    arrow: Mapping[tuple[int, int], Arrow]
    strip: Mapping[tuple[int, int], Strip]

    def of(self, mode: Mode) -> Mapping[tuple[int, int], Arrow | Strip]:
        """The cues of one kind."""
        return self.arrow if mode == "arrow" else self.strip


@dataclass(frozen=True, slots=True)
class CuePick:
    """One of a pair of questions: a gold path, the hop that the cue decides (from 1), and the cue."""

    pick: Pick
    mode: Mode
    hop: int
    cue: Arrow | Strip


Pair = tuple[CuePick, CuePick]


def read_cues(path: Path, graph: KnowledgeGraph, seed: int) -> dict[str, Cues]:
    """The usable cues of `cues.json` by the pool of A, so that no two pools ask about the same A.

    Raises:
        DataError: a file of another form.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))["countries"]
        arrows = dict(_arrows(record, graph))
        strips = dict(_strips(record, graph))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: {error!r}; expected the cues that the graph's build writes: build Atlas anew"
        ) from error
    countries = {a for a, _ in arrows.keys() | strips.keys()}
    pool = {a: pool_of(graph.entity_id(a), seed) for a in countries}
    return {
        name: Cues(
            {pair: cue for pair, cue in arrows.items() if pool[pair[0]] == name},
            {pair: cue for pair, cue in strips.items() if pool[pair[0]] == name},
        )
        for name, _ in POOLS
    }


def _arrows(
    record: Mapping[str, Mapping[str, list[dict[str, object]]]], graph: KnowledgeGraph
) -> Iterator[tuple[tuple[int, int], Arrow]]:
    for id_, country in record.items():
        for border in country["neighbours"] if country["outline"] else ():
            if float(str(border["edge_distance"])) >= EDGE_DISTANCE and border["shared"]:
                x, y = (float(v) for v in border["anchor"])  # type: ignore[attr-defined]
                pair = graph.entity_index(id_), graph.entity_index(str(border["id"]))
                yield pair, Arrow((x, y), float(str(border["bearing"])))


def _strips(
    record: Mapping[str, Mapping[str, list[dict[str, object]]]], graph: KnowledgeGraph
) -> Iterator[tuple[tuple[int, int], Strip]]:
    palettes = {id_: tuple(sorted(str(patch["name"]) for patch in c["palette"])) for id_, c in record.items()}
    sharers = Counter(palettes.values())
    for id_, country in record.items():
        ids = [str(border["id"]) for border in country["neighbours"]]
        beside = Counter(palettes[i] for i in ids)
        for i in ids:
            colours = palettes[i]
            if len(colours) > 1 and sharers[colours] >= SHARERS and beside[colours] == 1:
                pair = graph.entity_index(id_), graph.entity_index(i)
                yield pair, Strip(tuple(COLOURS[name] for name in colours))


def cue_pairs(
    graph: KnowledgeGraph, walks: Sequence[Walks], starts: Starts, cues: Cues
) -> dict[tuple[Mode, int], list[list[CuePick]]]:
    """Groups of questions with the same start, picture kind, and words, by mode and deciding hop.

    Args:
        walks: shortest walks of each length, the first of one step.
    """
    borders = {r for r in range(graph.num_relations) if graph.relation_id(r).startswith("borders_")}
    found: dict[tuple[Mode, int], list[list[CuePick]]] = {}
    for mode in MODES:
        for hop in (1, 2):
            groups: dict[tuple[object, ...], list[CuePick]] = defaultdict(list)
            for part in walks[hop:]:
                _group(part, hop, mode, borders, starts, cues, groups)
            found[mode, hop] = [g for g in groups.values() if len({p.pick.entities[-1] for p in g}) > 1]
    return found


def _group(
    walks: Walks,
    hop: int,
    mode: Mode,
    borders: set[int],
    starts: Starts,
    cues: Cues,
    groups: dict[tuple[object, ...], list[CuePick]],
) -> None:
    """Adds the walks whose step `hop` a cue of this mode can decide."""
    border = np.isin(walks.relations, list(borders))
    rows = np.flatnonzero(border[:, hop - 1] & (border.sum(axis=1) == 1))
    drawable = cues.of(mode)
    for entities, relations in zip(
        walks.entities[rows].tolist(), walks.relations[rows].tolist(), strict=True
    ):
        cue = drawable.get((entities[hop - 1], entities[hop]))
        if cue is None:
            continue
        for kind in _kinds(mode, hop, starts.files[entities[0]]):
            words = (kind, entities[0], *relations[: hop - 1], "cue", *relations[hop:])
            pick = Pick(tuple(entities), tuple(relations), kind)
            groups[words].append(CuePick(pick, mode, hop, cue))


def _kinds(mode: Mode, hop: int, files: Mapping[str, Sequence[str]]) -> list[str]:
    """The kinds of picture that the cue may be drawn on: an arrow needs A's outline, a strip any picture."""
    if mode == "arrow":
        return sorted({OUTLINE if hop == 1 else ON_OUTLINE} & files.keys())
    return sorted(files)


@dataclass(frozen=True, slots=True)
class PairCaps:
    """How many pairs of cue questions, at most.

    Attributes:
        count: in all.
        answer: questions with the same answer.
        start: pairs with the same start.
        country: pairs whose cue concerns the same country A.
    """

    count: int
    answer: int
    start: int
    country: int


def choose_pairs(
    groups: Mapping[tuple[Mode, int], list[list[CuePick]]], caps: PairCaps, rng: np.random.Generator
) -> list[Pair]:
    """Up to `caps.count` pairs: half of each mode, and of each mode at least half decided at hop 2.

    A pair takes two paths of a group with different answers.
    """
    count = caps.count
    answers: Counter[int] = Counter()
    relations: Counter[int] = Counter()
    starts: Counter[int] = Counter()
    countries: Counter[int] = Counter()
    chosen: list[Pair] = []
    for mode in MODES:
        for hop, quota in ((2, count // 4 + count % 4), (1, count // 4)):
            rest = quota
            pool = groups[mode, hop]
            for at in _rare_kinds_first(pool, rng):
                pair = _pair(pool[at], answers, caps.answer, rng) if rest else None
                if pair is None:
                    continue
                start, last = pair[0].pick.entities[0], pair[0].pick.relations[-1]
                country = pair[0].pick.entities[hop - 1]
                full = starts[start] >= caps.start or countries[country] >= caps.country
                if full or relations[last] >= max(2, count // 8):
                    continue
                starts[start] += 1
                countries[country] += 1
                relations[last] += 1
                answers.update(p.pick.entities[-1] for p in pair)
                chosen.append(pair)
                rest -= 1
    return chosen


def _rare_kinds_first(pool: list[list[CuePick]], rng: np.random.Generator) -> list[int]:
    """A random order of the groups in which every kind of picture comes equally early."""
    kinds = Counter(group[0].pick.kind for group in pool)
    weight = np.array([kinds[group[0].pick.kind] for group in pool], dtype=np.float64)
    order: list[int] = np.argsort(rng.exponential(size=len(pool)) * weight, kind="stable").tolist()
    return order


def _pair(group: list[CuePick], answers: Counter[int], cap: int, rng: np.random.Generator) -> Pair | None:
    order = [group[i] for i in rng.permutation(len(group)).tolist()]
    free = [p for p in order if answers[p.pick.entities[-1]] < cap]
    for other in free[1:]:
        if other.pick.entities[-1] != free[0].pick.entities[-1]:
            return free[0], other
    return None
