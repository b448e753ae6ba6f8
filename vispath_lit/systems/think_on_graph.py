"""Think-on-Graph (Sun et al., ICLR 2024): a language model walks the graph, a few entities at a time.

1. It starts from the topic entity; without one it answers by thought alone.
2. The relations of each frontier entity, both ways, but for administrative ones and the way straight back.
3. The model picks at most `width` relations an entity, with scores (temperature 0.4).
4. The neighbours of each; of `many` and more, `sample` are drawn, by a seed.
5. The model scores the neighbours; the relation's score is multiplied in.
6. The best `width` of all are kept, zeros dropped.
7. The model judges whether the triples suffice (temperature 0).
8. If not, the next hop; at a dead end the answer comes from the triples.
9. With the depth exhausted the answer comes by thought alone.

Fallbacks of replies that are not valid: no relation (step 3), even scores (5), insufficient (7), abstention
(8, 9). The published code loses unnamed entities from names but not from ids, and counts an empty answer as
right: not here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xxhash
from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import ConfigError, at_least
from vispath_lit.kg.frontier import follow, leaving
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.texts import fact
from vispath_lit.protocols import ChatBackend, Grounder, QuestionAnalyzer
from vispath_lit.systems.conversation import Step, Talk
from vispath_lit.systems.replies import Said, Verdict, numbered
from vispath_lit.systems.walking import Walking
from vispath_lit.types import Candidate, ChatRequest, Path, Query

TEMPERATURE = 0.4  # of steps 3 and 5
NOTHING = Said(answer="")


class Pick(BaseModel):
    """One of a numbered list."""

    number: int
    score: float


class Picks(BaseModel):
    """Several of a numbered list, with scores."""

    picks: list[Pick]


RELATIONS = Prompt(
    step="tog_relations",
    instructions="""
`question` is answered by walking a knowledge graph; the walk began at `start` and stands at `entity`. Which
of `relations` are worth walking next? Pick at most `width` of them by number and give each a score from 0
to 1; the scores add up to 1.
""",
    reply=Picks,
    temperature=TEMPERATURE,
)
ENTITIES = Prompt(
    step="tog_entities",
    instructions="""
`question` is answered by walking a knowledge graph; the walk began at `start`, and the step from `entity`
along `relation` leads to `entities`. Give those that may help a score from 0 to 1, by number; the scores add
up to 1.
""",
    reply=Picks,
    max_tokens=512,
    temperature=TEMPERATURE,
)
JUDGE = Prompt(
    step="tog_judge",
    instructions="""
`question` is about `start`. Do `facts`, with what you know, suffice to answer it? `sufficient` says so;
`answer` is then the answer, a name and not a sentence, and else empty.
""",
    reply=Verdict,
)
FROM_FACTS = Prompt(
    step="tog_from_facts",
    instructions="""
`question` is about `start`. Answer it from `facts` and what you know. `answer` is a name, not a sentence.
""",
    reply=Said,
)
THOUGHT = Prompt(
    step="tog_thought",
    instructions="""
Think step by step about `question`, which is about `start` where that is not empty. `answer` is then the
answer alone: a name, not a sentence.
""",
    reply=Said,
)


class ThinkOnGraph(Walking):
    """The `System`.

    Args:
        width: relations an entity, and entities in all, that are kept.
        depth: hops at most.
        many: neighbours from which on they are sampled.
        sample: how many are drawn then.
        administrative: beginnings of relation ids that say nothing about the world.
        seed: of the draws.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        chat: ChatBackend,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        width: int = 3,
        depth: int = 3,
        many: int = 20,
        sample: int = 5,
        administrative: Sequence[str] = (),
        seed: int = 0,
        batch_size: int = 32,
        name: str = "Think-on-Graph",
    ) -> None:
        super().__init__(graph, chat, analyzer, grounder, batch_size, name)
        at_least(1, "system", width=width, depth=depth, many=many, sample=sample)
        if isinstance(administrative, str):  # Its letters would each be a beginning.
            raise ConfigError(f"system.administrative is {administrative!r}; expected a list of beginnings")
        self.width = width
        self.depth = depth
        self.many = many
        self.sample = sample
        self.administrative = tuple(administrative)
        self.seed = seed

    def talk(self, query: Query, candidates: Sequence[Candidate]) -> Talk:
        if not candidates:  # 1
            (said,) = yield [THOUGHT.request({"question": query.text, "start": ""}, NOTHING, query)]
            return self.predicted(said.answer, "image_only")
        start = self.graph.label(candidates[0].entity)
        frontier = [Path((candidates[0].entity,), (), 1.0)]
        facts: list[str] = []
        kept: list[Path] = []
        for _ in range(self.depth):
            frontier = yield from self._hop(query, start, frontier)  # 2 to 6
            if not frontier:
                break
            kept = [*frontier, *kept]
            facts = list(dict.fromkeys([*facts, *(self._last(path) for path in frontier)]))
            known: dict[str, object] = {"question": query.text, "start": start, "facts": facts}
            (verdict,) = yield [JUDGE.request(known, Verdict(sufficient=False, answer=""), query)]  # 7
            if verdict.sufficient and verdict.answer.strip():
                return self.predicted(
                    verdict.answer, "stopped", paths=kept, candidates=candidates, statement="; ".join(facts)
                )
        dead_end = not frontier and bool(facts)
        known = {"question": query.text, "start": start}
        if dead_end:
            known["facts"] = facts
        (said,) = yield [(FROM_FACTS if dead_end else THOUGHT).request(known, NOTHING, query)]  # 8 and 9
        return self.predicted(
            said.answer,
            "fallback" if dead_end else "terminal",
            paths=kept,
            candidates=candidates,
            statement="; ".join(facts),
        )

    def _hop(self, query: Query, start: str, frontier: Sequence[Path]) -> Step[list[Path]]:
        """Steps 2 to 6: the best `width` longer paths of all, best first; earlier ones on a tie."""
        asked = [(path, relations) for path in frontier if (relations := self._relations(path))]
        if not asked:
            return []
        replies = yield [self._pick_relations(query, start, path, relations) for path, relations in asked]
        steps = []
        for (path, relations), reply in zip(asked, replies, strict=True):
            for place, score in scores(reply, len(relations), self.width):
                tails = self._neighbours(query, path, relations[place])
                steps.append((path, relations[place], score, tails))
        asked_for = [
            self._score_entities(query, start, path, relation, tails)
            for path, relation, _, tails in steps
            if len(tails) > 1
        ]
        weighed = iter((yield asked_for) if asked_for else [])
        longer = []
        for path, relation, score, tails in steps:
            shares = [(0, 1.0)] if len(tails) == 1 else scores(next(weighed), len(tails), len(tails))
            longer += [
                Path((*path.entities, tails[i]), (*path.relations, relation), score * share)
                for i, share in shares
            ]
        best = sorted(longer, key=lambda path: -path.score)[: self.width]
        return [path for path in best if path.score > 0]

    def _relations(self, path: Path) -> list[int]:
        """Step 2: signed relations that leave a path's end, in their order."""
        count = self.graph.num_relations
        back = (path.relations[-1] + count) % (2 * count) if path.relations else -1
        return [r for r in leaving(self.graph, path.end) if r != back and not self._is_administrative(r)]

    def _is_administrative(self, relation: int) -> bool:
        return bool(self.administrative) and self.graph.relation_id(
            relation % self.graph.num_relations
        ).startswith(self.administrative)

    def _neighbours(self, query: Query, path: Path, relation: int) -> list[int]:
        """Step 4, in the order of the graph. The draw depends on the question and the step alone."""
        found = follow(self.graph, path.end, [relation])
        if len(found) >= self.many and len(found) > self.sample:
            step = f"{self.seed}\n{query.text}\n{self.graph.entity_id(path.end)}\n{relation}"
            rng = np.random.default_rng(xxhash.xxh3_64_intdigest(step.encode("utf8", "surrogatepass")))
            found = np.sort(rng.choice(found, self.sample, replace=False))
        return [int(entity) for entity in found.tolist()]

    def _last(self, path: Path) -> str:
        """The last step of a path as a fact."""
        head, tail = path.entities[-2:]
        return fact(self.graph, head, path.relations[-1], tail)

    # Requests

    def _pick_relations(
        self, query: Query, start: str, path: Path, relations: Sequence[int]
    ) -> ChatRequest[Picks]:
        data: dict[str, object] = {
            "question": query.text,
            "start": start,
            "entity": self.graph.label(path.end),
            "width": self.width,
            "relations": numbered([self.graph.relation_label(relation) for relation in relations]),
        }
        return RELATIONS.request(data, Picks(picks=[]), query, most=self.width)

    def _score_entities(
        self, query: Query, start: str, path: Path, relation: int, tails: Sequence[int]
    ) -> ChatRequest[Picks]:
        even = [Pick(number=i + 1, score=1 / len(tails)) for i in range(len(tails))]
        data: dict[str, object] = {
            "question": query.text,
            "start": start,
            "entity": self.graph.label(path.end),
            "relation": self.graph.relation_label(relation),
            "entities": numbered(self.graph.labels(tails)),
        }
        return ENTITIES.request(data, Picks(picks=even), query, most=len(tails))


def scores(reply: Picks, count: int, most: int) -> list[tuple[int, float]]:
    """(position, score in [0, 1]) of the picked, best first, at most `most`; none unlisted."""
    found: dict[int, float] = {}
    for pick in reply.picks:
        if 1 <= pick.number <= count and math.isfinite(pick.score):
            found.setdefault(pick.number - 1, min(max(pick.score, 0.0), 1.0))
    return sorted(found.items(), key=lambda pair: -pair[1])[:most]
