"""Paths-over-Graph (Tan et al., WWW 2025): paths through a question's own subgraph, pruned in three steps.

1. The model writes a chain of reasoning and one sub-question a topic.
2. The chain's length predicts the number of hops L; the topics are put into the order of the chain.
3. The subgraph: what lies within `d_max` hops of a topic, both ways.
4. Several topics: only what lies within `d_max` hops of each of them is left, or of the first where
   nothing does.
5. From ceil(L / 2) hops up: paths that join the ordered topics, each pair by shortest paths of at most
   twice as many hops; of a single topic all walks of so many hops. Where more hops find several topics no
   other paths, nothing is asked again.
6. The sentence encoder keeps `shortlist` of them, the model `branches`, the model `keep`.
7. The model sums them up and judges whether they suffice.
8. If no number of hops does: the model names likely entities; those whose name in the subgraph has a TF-IDF
   cosine above `match` add the paths that lead to them; pruned, summed up and judged again.
9. If not: the kept paths are walked one hop further, `keep` are kept of these, `combined` in all; judged
   again.
10. If not: the answer comes from the paths and what the model knows.

On a graph with hubs a topic has millions of walks of three hops: the walks of step 5 are cut to the
`shortlist` that is nearest to the question after every hop, and an entity's edges to `hub_cap` a
direction, shared fairly among its relations. Names are matched among the 50 of the subgraph that the
sentence encoder finds nearest.

Fallbacks of replies that are not valid: one hop and the question itself (step 1), the encoder's order
(6), the paths as they are and "insufficient" (7), no entity (8), abstention (10). The published code ends
step 9 at the gold name and leaves out questions without gold: neither is known here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path as FilePath

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel
from torch import Tensor

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import ConfigError, at_least
from vispath_lit.kg.folding import fold
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.shortest import distances, shortest_paths
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.name import written_as_name
from vispath_lit.protocols import ChatBackend, Grounder, QuestionAnalyzer, TextEncoder, TextProvider
from vispath_lit.systems.conversation import Step, Talk
from vispath_lit.systems.name_likeness import tf_idf
from vispath_lit.systems.nearest_walks import NearestWalks
from vispath_lit.systems.replies import Names, Numbers, Said, Told, Verdict, chosen, numbered, plain
from vispath_lit.systems.walking import Walking, distinct, joined
from vispath_lit.types import Candidate, Path, Query

MAX_TOPICS = 4
MAX_CHAIN = 12  # steps of the model's chain that are read
MAX_PAIR = 100  # paths between two topics
MAX_JOINED = 400  # paths through all topics
NEAR_NAMES = 50  # of the subgraph, among which a predicted name is matched
MAX_PREDICTED = 5  # entities that the model may name


class Plan(BaseModel):
    """What has to be walked from the topics to the answer, in words."""

    chain: list[str]
    sub_questions: list[str]


PLAN = Prompt(
    step="pog_plan",
    instructions="""
`question` is to be answered by walking a knowledge graph from `topics`. `chain` names in order what is
passed through: the first topic, then what each step reaches, and last the answer's kind; topics stand in
it by their names. `sub_questions` holds one question for each topic: what the walk asks of that one.
""",
    reply=Plan,
)
BRANCHES = Prompt(
    step="pog_branches",
    instructions="""
Which of `paths` of a knowledge graph may help with `question` and `sub_questions`? `numbers` names at
most `most` of them, the best first; paths that leave the topic of the question are left out.
""",
    reply=Numbers,
)
BEST = Prompt(
    step="pog_best",
    instructions="""
Which of `paths` of a knowledge graph lead to the answer of `question`? Weigh each as a whole against `chain`.
`numbers` names at most `most` of them, the best first.
""",
    reply=Numbers,
)
SUMMARY = Prompt(
    step="pog_summary",
    instructions="""
Sum up what `paths` of a knowledge graph tell about `question`: the facts that matter, with the names as
they are written there, and nothing else. `text` holds the summary.
""",
    reply=Told,
    max_tokens=384,
)
JUDGE = Prompt(
    step="pog_judge",
    instructions="""
Do `paths` and their `summary`, with what you know, suffice to answer `question` and each of `sub_questions`?
`sufficient` says so; `answer` is then the answer, a name and not a sentence, and else empty.
""",
    reply=Verdict,
)
PREDICT = Prompt(
    step="pog_predict",
    instructions="""
`paths` of a knowledge graph were not enough to answer `question`. Which entities, by what you know, are
likely to be its answer or to lie on the way to it? `names` holds their names, the likeliest first.
""",
    reply=Names,
)
ANSWER = Prompt(
    step="pog_answer",
    instructions="""
Answer `question` from `paths` of a knowledge graph and what you know. `answer` is a name, not a sentence.
""",
    reply=Said,
)


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A question with the model's plan."""

    query: Query
    chain: Sequence[str]
    sub_questions: Sequence[str]

    @property
    def length(self) -> int:
        """L: the steps of the chain, one where there is none."""
        return max(len(self.chain) - 1, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """Steps 3 and 4: the topics in order, and `[N]` bool, the entities that are left."""

    topics: tuple[int, ...]
    inside: NDArray[np.bool_]


class PathsOverGraph(Walking):
    """The `System`. Its first topic is the start; others are those that the question names.

    Args:
        texts: gives paths their vectors; the encoder's own with exact texts.
        d_max: hops from a topic, at most.
        shortlist, branches, keep: what each cut of step 6 leaves.
        combined: paths in all in step 9.
        match: cosine from which on a name in the graph is the predicted one.
        hub_cap: edges of an entity and direction.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        texts: TextProvider,
        chat: ChatBackend,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        cache_dir: FilePath | str | None = None,
        d_max: int = 3,
        shortlist: int = 80,
        branches: int = 20,
        keep: int = 3,
        combined: int = 10,
        match: float = 0.8,
        hub_cap: int = 50,
        batch_size: int = 32,
        name: str = "Paths-over-Graph",
    ) -> None:
        super().__init__(graph, chat, analyzer, grounder, batch_size, name)
        at_least(1, "system", d_max=d_max, keep=keep, hub_cap=hub_cap, combined=combined)
        if not keep <= branches <= shortlist:
            raise ConfigError(
                f"system.keep, branches and shortlist are {keep}, {branches} and {shortlist}; expected "
                "none to be smaller than the one before"
            )
        self.encoder = text_encoder
        self.walks = NearestWalks(graph, texts.stages[-1], shortlist, hub_cap)
        self.nearest = NameIndex(graph, text_encoder, cache_dir)
        self.d_max = d_max
        self.branches = branches
        self.keep = keep
        self.combined = combined
        self.match = match

    def talk(self, query: Query, candidates: Sequence[Candidate]) -> Talk:
        topics = self._topics(query, candidates)
        labels = self.graph.labels(topics)
        fallback = Plan(chain=[], sub_questions=[query.text])
        (plan,) = yield [
            PLAN.request({"question": query.text, "topics": labels}, fallback, query, most=MAX_CHAIN)
        ]  # 1
        chain = [text for text in map(plain, plan.chain) if text][:MAX_CHAIN]
        asked = Asked(query, chain, plan.sub_questions[:MAX_TOPICS])
        answer: str = ""
        best: list[Path] = []
        if topics:
            subgraph = self._subgraph(in_order(topics, labels, asked.chain))  # 2 to 4
            answer, best = yield from self._explored(asked, subgraph)  # 5 to 9
        if answer:
            lines = "; ".join(map(self.words, best))
            return self.predicted(answer, "stopped", paths=best, candidates=candidates, statement=lines)
        (said,) = yield [ANSWER.request(self._data(asked, best), Said(answer=""), query)]  # 10
        return self.predicted(
            said.answer, "terminal" if best else "image_only", paths=best, candidates=candidates
        )

    def _topics(self, query: Query, candidates: Sequence[Candidate]) -> list[int]:
        """The start, then what the question writes as a name, the first entity of each."""
        mentions = [m for m in self.names.find_mentions(query.text) if written_as_name(query.text, *m.span)]
        found = [*(c.entity for c in candidates[:1]), *(mention.entities[0] for mention in mentions)]
        return list(dict.fromkeys(found))[:MAX_TOPICS]

    def _subgraph(self, topics: Sequence[int]) -> Subgraph:
        inside = np.ones(self.graph.num_entities, dtype=bool)
        for topic in topics:
            inside &= distances(self.graph, topic, self.d_max) >= 0
        inside[list(topics)] = True
        if int(inside.sum()) == len(topics):  # nothing is near all of them: the first one's surroundings
            inside |= distances(self.graph, topics[0], self.d_max) >= 0
        return Subgraph(tuple(topics), inside)

    def _explored(self, asked: Asked, subgraph: Subgraph) -> Step[tuple[str, list[Path]]]:
        """Steps 5 to 9: the answer, empty where no paths suffice, and the paths kept last."""
        aim = self.encoder.encode([" ".join([asked.query.text, *asked.chain])])[0]
        best: list[Path] = []
        before: list[Path] | None = None
        for hops in range(min(math.ceil(asked.length / 2), self.d_max), self.d_max + 1):
            paths = self._joining(subgraph, hops, aim)  # 5
            if len(subgraph.topics) > 1 and paths == before:
                continue  # topics that are joined stay joined by the same shortest paths
            before = paths
            best = yield from self._pruned(asked, paths, aim)  # 6
            if answer := (yield from self._judged(asked, best)):  # 7
                return answer, best
        more = yield from self._supplement(asked, subgraph, best)  # 8
        best = yield from self._pruned(asked, [*best, *more], aim)
        if more and (answer := (yield from self._judged(asked, best))):
            return answer, best
        further = yield from self._pruned(asked, self.walks.one_hop(best), aim)  # 9
        best = distinct([*best, *further])[: self.combined]
        answer = (yield from self._judged(asked, best)) if further else ""
        return answer, best

    def _joining(self, subgraph: Subgraph, hops: int, aim: Tensor) -> list[Path]:
        """Step 5."""
        pieces = [
            [
                path
                for path in shortest_paths(self.graph, first, second, 2 * hops, MAX_PAIR)
                if subgraph.inside[list(path.entities)].all()
            ]
            for first, second in zip(subgraph.topics, subgraph.topics[1:], strict=False)
        ]
        if pieces and all(pieces):
            return [joined(parts) for parts in islice(product(*pieces), MAX_JOINED)]
        return self.walks.within(subgraph.inside, subgraph.topics[0], hops, aim)

    def _pruned(self, asked: Asked, paths: Sequence[Path], aim: Tensor) -> Step[list[Path]]:
        """Step 6: at most `keep` paths; a cut that has nothing to cut asks nothing."""
        paths = self.walks.nearest(distinct(paths), aim)
        for prompt, most in ((BRANCHES, self.branches), (BEST, self.keep)):
            if len(paths) > most:
                data = self._data(asked, paths) | {"most": most}
                data["paths"] = numbered([self.words(path) for path in paths])
                order = Numbers(numbers=list(range(1, most + 1)))
                (reply,) = yield [prompt.request(data, order, asked.query, most=most)]
                paths = [paths[i] for i in chosen(reply.numbers, len(paths), most)] or paths[:most]
        return list(paths)

    def _judged(self, asked: Asked, paths: Sequence[Path]) -> Step[str]:
        """Step 7: the answer, empty where the paths do not suffice."""
        if not paths:
            return ""
        data = self._data(asked, paths)
        lines = "; ".join(map(self.words, paths))
        (summary,) = yield [SUMMARY.request(data, Told(text=lines), asked.query)]
        data["summary"] = summary.text.strip() or lines
        (verdict,) = yield [JUDGE.request(data, Verdict(sufficient=False, answer=""), asked.query)]
        return verdict.answer.strip() if verdict.sufficient else ""

    def _supplement(self, asked: Asked, subgraph: Subgraph, paths: Sequence[Path]) -> Step[list[Path]]:
        """Step 8: shortest paths from the topics to entities that the model names."""
        (reply,) = yield [
            PREDICT.request(self._data(asked, paths), Names(names=[]), asked.query, most=MAX_PREDICTED)
        ]
        names = list(dict.fromkeys(name for name in map(plain, reply.names) if name))[:MAX_PREDICTED]
        found: list[Path] = []
        for matches, name in zip(self.nearest.search(names, NEAR_NAMES) if names else [], names, strict=True):
            inside = [m for m in matches if subgraph.inside[m.entity]]
            for match, cosine in zip(inside, tf_idf(name, [m.name for m in inside]), strict=True):
                if cosine > self.match:
                    for topic in subgraph.topics:
                        found += shortest_paths(self.graph, topic, match.entity, self.d_max, MAX_PAIR)
        return distinct(found)

    def _data(self, asked: Asked, paths: Sequence[Path]) -> dict[str, object]:
        """What the prompts show."""
        return {
            "question": asked.query.text,
            "sub_questions": list(asked.sub_questions),
            "chain": list(asked.chain),
            "paths": [self.words(path) for path in paths],
        }


def in_order(topics: Sequence[int], labels: Sequence[str], chain: Sequence[str]) -> list[int]:
    """Step 2: the topics by where the chain names them first; one that it does not name keeps its place."""
    steps = [fold(step) for step in chain]

    def place(i: int) -> int:
        return next((at for at, step in enumerate(steps) if fold(labels[i]) in step), -1)

    named = sorted((i for i in range(len(topics)) if place(i) >= 0), key=place)
    turn = iter(named)
    return [topics[next(turn) if place(i) >= 0 else i] for i in range(len(topics))]
