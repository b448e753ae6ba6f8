"""The batched search against Algorithm 1 written from the paper with plain loops, path by path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from search_worlds import HashEncoder, TableGrounder, Triple, WorldMaker

from vispath_lit.search.settings import SearchSettings
from vispath_lit.types import Query

Walked = tuple[tuple[int, ...], tuple[int, ...]]
Scored = tuple[float, Walked]


def cosine(encoder: Any, one: str, other: str) -> float:
    a, b = encoder.vector(one), encoder.vector(other)
    return float(sum(x * y for x, y in zip(a, b, strict=True)))


@dataclass
class SlowSearch:
    """Algorithm 1 for one question, as the paper tells it."""

    triples: list[Triple]
    entities: list[str]
    relations: list[str]
    encoder: Any
    options: SearchSettings

    def relation_text(self, signed: int) -> str:
        count = len(self.relations)
        return self.relations[signed] if signed < count else f"inverse of {self.relations[signed - count]}"

    def edges(self, path: Walked) -> list[tuple[int, int]]:
        entities, relations = path
        here, count = entities[-1], len(self.relations)
        found = sorted((r, o) for s, r, o in self.triples if s == here)
        if self.options.inverse:
            found += sorted((r + count, s) for s, r, o in self.triples if o == here)
        if not self.options.backtrack and relations:
            came = self.stored(entities[-2], relations[-1], here)
            found = [(r, e) for r, e in found if self.stored(here, r, e) != came]
        return found

    def stored(self, here: int, signed: int, there: int) -> Triple:
        count = len(self.relations)
        return (here, signed, there) if signed < count else (there, signed - count, here)

    def start(self, question: str, candidates: list[int]) -> list[int]:
        """Eq. 2-3."""
        if not self.options.validation:
            return candidates
        scores = []
        for candidate in candidates:
            s = -1.0
            for subject, relation, _ in self.triples:
                if subject == candidate:
                    s = max(s, cosine(self.encoder, self.relations[relation], question))
            scores.append(s)
        best = None
        for k in range(1, len(candidates)):
            if best is None or scores[k] > scores[best]:
                best = k
        if best is not None and scores[best] - scores[0] > self.options.delta + 0.01 * (best + 1 - 2):
            return [candidates[best]] + [c for k, c in enumerate(candidates) if k != best]
        return candidates

    def verbalize(self, path: Walked) -> str:
        text = self.entities[path[0][0]]
        for relation, entity in zip(path[1], path[0][1:], strict=True):
            text += " " + self.relation_text(relation) + " " + self.entities[entity]
        return text

    def hop(self, question: str, sketch: str, kept: list[Walked]) -> tuple[list[Scored], list[Scored]]:
        """Eq. 4-8: discovered paths and ranked chains, each best first where it is ranked."""
        discovered: list[Scored] = []
        for path in kept:
            scored = []
            for relation, tail in self.edges(path):
                text = self.relation_text(relation) + " " + self.entities[tail]
                scored.append((cosine(self.encoder, text, question), relation, tail))
            scored.sort(key=lambda edge: -edge[0])
            taken: list[Scored] = []
            used: dict[int, int] = {}
            for score, relation, tail in scored:
                used[relation] = used.get(relation, 0) + 1
                if self.options.relation_cap is not None and used[relation] > self.options.relation_cap:
                    continue
                if len(taken) < self.options.m1:
                    taken.append((score, ((*path[0], tail), (*path[1], relation))))
            discovered += taken
        objective = " ".join(part for part in (question, sketch) if part)
        if self.options.chain_pruning:
            chains = [(cosine(self.encoder, self.verbalize(p), objective), p) for _, p in discovered]
        else:
            chains = list(discovered)
        chains.sort(key=lambda chain: -chain[0])
        return discovered, chains[: self.options.m2]

    def select(self, chains: list[Scored]) -> list[Scored]:
        if not self.options.distinct_relations:
            return chains[: self.options.m3]
        fresh: list[int] = []
        repeats: list[int] = []
        seen: set[tuple[int, ...]] = set()
        for i, (_, path) in enumerate(chains):
            (repeats if path[1] in seen else fresh).append(i)
            seen.add(path[1])
        return [chains[i] for i in sorted((fresh + repeats)[: self.options.m3])]

    def answer(self, text: str, candidates: list[int]) -> dict[str, Any]:
        _, sketch, hops = text.split("|")
        depth = min(int(hops), self.options.d_max)
        ranked = self.start(text, candidates)
        kept: list[Walked] = [((ranked[0],), ())]
        result: dict[str, Any] = {"candidates": ranked, "provenance": "abstained", "paths": [], "hops": []}
        visited: list[Scored] = []
        for i in range(1, self.options.d_max + 1):
            discovered, chains = self.hop(text, sketch, kept)
            best = self.select(chains)
            result["hops"].append((discovered, chains, best))
            kept = [path for _, path in best]
            visited += best
            if not kept:
                break
            if not self.options.evidence_checking:
                result.update(provenance="terminal", paths=best)
            elif i >= depth:
                result.update(provenance="stopped", paths=best)
                break
        if not result["paths"] and visited:
            visited.sort(key=lambda one: -one[0])
            result.update(provenance="terminal", paths=visited[: self.options.m3])
        return result


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[Triple], list[str], list[str]]:
    entities = draw(st.integers(2, 9))
    relations = draw(st.integers(1, 4))
    triple = st.tuples(
        st.integers(0, entities - 1), st.integers(0, relations - 1), st.integers(0, entities - 1)
    )
    triples = draw(st.lists(triple, min_size=1, max_size=35))
    # Few labels for many entities, so that different edges and chains read the same.
    names = st.sampled_from(["ann", "bob", "the river", "oslo", "red"])
    labels = draw(st.lists(names, min_size=entities, max_size=entities))
    return triples, labels, [f"relation {i % 3}" for i in range(relations)]


@st.composite
def options(draw: st.DrawFn) -> SearchSettings:
    m3 = draw(st.integers(1, 4))
    return SearchSettings(
        m1=draw(st.integers(1, 6)),
        m2=m3 + draw(st.integers(0, 4)),
        m3=m3,
        d_max=draw(st.integers(1, 4)),
        inverse=draw(st.booleans()),
        relation_cap=draw(st.none() | st.integers(1, 2)),
        backtrack=draw(st.booleans()),
        delta=draw(st.sampled_from([0.05, 0.25, 0.3])),
        validation=draw(st.booleans()),
        chain_pruning=draw(st.booleans()),
        evidence_checking=draw(st.booleans()),
        distinct_relations=draw(st.booleans()),
        trace="full",
    )


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), world=worlds(), chosen=options())
def test_search_equals_the_paper_path_by_path(
    make_world: WorldMaker,
    data: st.DataObject,
    world: tuple[list[Triple], list[str], list[str]],
    chosen: SearchSettings,
) -> None:
    made = make_world(*world)
    count = len(made.entity_labels)
    table: dict[str, list[int]] = {}
    for i in range(data.draw(st.integers(1, 5))):
        sketch = data.draw(st.sampled_from(["", "relation 1, relation 0"]))
        text = f"question {i} {data.draw(st.integers(0, 50))}|{sketch}|{data.draw(st.integers(1, 5))}"
        table[text] = data.draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=4, unique=True))
    searcher = made.searcher(TableGrounder(table), chosen)
    predictions = searcher.search([Query(text) for text in table])
    slow = SlowSearch(made.triples, made.entity_labels, made.relation_labels, HashEncoder(), chosen)
    for (text, candidates), found in zip(table.items(), predictions, strict=True):
        expected = slow.answer(text, candidates)
        assert [c.entity for c in found.candidates] == expected["candidates"]
        assert found.provenance == expected["provenance"]
        assert as_scored(found.paths) == expected["paths"]
        for hop, (discovered, chains, best) in zip(found.trace, expected["hops"], strict=True):
            assert as_scored(hop.discovered) == discovered
            assert as_scored(hop.chains) == chains
            assert as_scored(hop.kept) == best


def as_scored(paths: Any) -> list[Scored]:
    return [(path.score, (path.entities, path.relations)) for path in paths]
