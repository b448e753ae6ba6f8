"""Paths-over-Graph (Tan et al., WWW 2025): paths through a question's own subgraph, pruned in three steps.

1. The model writes a chain of reasoning and one sub-question a topic.
2. The chain's length predicts the number of hops L; the topics are put into the order of the chain.
3. The subgraph: what lies within `d_max` hops of a topic, both ways.
4. Several topics: only what lies within `d_max` hops of each of them is left, or of the first where
   nothing does.
5. From ceil(L / 2) hops up: paths that join the ordered topics, each pair by shortest paths of at most
   twice as many hops; of a single topic all walks of so many hops.
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
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel
from torch import Tensor

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import ConfigError
from vispath_lit.kg.folding import fold
from vispath_lit.kg.frontier import expand
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.shortest import distances, shortest_paths
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.grounders.name import written_as_name
from vispath_lit.protocols import ChatBackend, Grounder, QuestionAnalyzer, TextEncoder, TextProvider
from vispath_lit.systems.conversation import (
    Conversational,
    Names,
    Numbers,
    Said,
    Talk,
    Told,
    Verdict,
    chosen,
    numbered,
    plain,
)
from vispath_lit.systems.mindmap import joined
from vispath_lit.types import Candidate, ChatRequest, Path, Paths, Prediction, Query

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
Step = Generator[list[ChatRequest[Any]], list[Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """Steps 3 and 4: the topics in order, and `[N]` bool, the entities that are left."""

    topics: tuple[int, ...]
    inside: NDArray[np.bool_]


class PathsOverGraph(Conversational):
    """The `System`. It reads no picture: the first topic is granted or grounded; others are named.

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
        super().__init__(graph, chat, batch_size, name)
        counts = {"d_max": d_max, "keep": keep, "hub_cap": hub_cap, "combined": combined}
        for key, value in counts.items():
            if value < 1:
                raise ConfigError(f"system.{key} is {value}; expected at least 1")
        if not keep <= branches <= shortlist:
            raise ConfigError(
                f"system.keep, branches and shortlist are {keep}, {branches} and {shortlist}; expected "
                "none to be smaller than the one before"
            )
        self.encoder = text_encoder
        self.stage = texts.stages[-1]
        self.nearest = NameIndex(graph, text_encoder, cache_dir)
        self.analyzer = analyzer
        self.grounder = grounder
        self.d_max = d_max
        self.shortlist = shortlist
        self.branches = branches
        self.keep = keep
        self.combined = combined
        self.match = match
        self.hub_cap = hub_cap

    def talks(self, queries: Sequence[Query]) -> list[Talk]:
        starts = self.grounder.ground(queries, self.analyzer.analyze(queries))
        return [self._talk(query, found) for query, found in zip(queries, starts, strict=True)]

    def _talk(self, query: Query, candidates: Sequence[Candidate]) -> Talk:
        topics = self._topics(query, candidates)
        labels = self.graph.labels(topics)
        fallback = Plan(chain=[], sub_questions=[query.text])
        (plan,) = yield [PLAN.request({"question": query.text, "topics": labels}, fallback, query)]  # 1
        chain = [text for text in map(plain, plan.chain) if text][:MAX_CHAIN]
        asked = Asked(query, chain, plan.sub_questions[:MAX_TOPICS])
        best: list[Path] = []
        if topics:
            subgraph = self._subgraph(in_order(topics, labels, asked.chain))  # 2 to 4
            aim = self.encoder.encode([" ".join([query.text, *asked.chain])])[0]
            for hops in range(min(math.ceil(asked.length / 2), self.d_max), self.d_max + 1):
                best = yield from self._pruned(asked, self._joining(subgraph, hops, aim), aim)  # 5 and 6
                done = yield from self._judged(asked, best)  # 7
                if done:
                    return self._stopped(done, best, candidates)
            more = yield from self._supplement(asked, subgraph, best)  # 8
            best = yield from self._pruned(asked, [*best, *more], aim)
            done = (yield from self._judged(asked, best)) if more else ""
            if done:
                return self._stopped(done, best, candidates)
            further = yield from self._pruned(asked, self._one_hop(best), aim)  # 9
            best = distinct([*best, *further])[: self.combined]
            done = (yield from self._judged(asked, best)) if further else ""
            if done:
                return self._stopped(done, best, candidates)
        request = ANSWER.request(asked.about(self, best), Said(answer=""), query)
        (said,) = yield [request]  # 10
        return self.predicted(
            said.answer, "terminal" if best else "image_only", paths=best, candidates=candidates
        )

    def _stopped(self, answer: str, paths: Sequence[Path], candidates: Sequence[Candidate]) -> Prediction:
        lines = "; ".join(map(self.words, paths))
        return self.predicted(answer, "stopped", paths=paths, candidates=candidates, statement=lines)

    def _topics(self, query: Query, candidates: Sequence[Candidate]) -> list[int]:
        """The start, then what the question writes as a name, the first entity of each."""
        mentions = [m for m in self.names.find_mentions(query.text) if written_as_name(query.text, *m.span)]
        found = [*(c.entity for c in candidates[:1]), *(mention.entities[0] for mention in mentions)]
        return list(dict.fromkeys(found))[:MAX_TOPICS]

    # Steps 3 to 6

    def _subgraph(self, topics: Sequence[int]) -> Subgraph:
        inside = np.ones(self.graph.num_entities, dtype=bool)
        for topic in topics:
            inside &= distances(self.graph, topic, self.d_max) >= 0
        inside[list(topics)] = True
        if int(inside.sum()) == len(topics):  # nothing is near all of them: the first one's surroundings
            inside |= distances(self.graph, topics[0], self.d_max) >= 0
        return Subgraph(tuple(topics), inside)

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
        return self._walks(subgraph, hops, aim)

    def _walks(self, subgraph: Subgraph, hops: int, aim: Tensor) -> list[Path]:
        """Walks of up to `hops` hops from the first topic, after each the `shortlist` nearest to the aim."""
        paths = Paths.starts(torch.tensor(subgraph.topics[:1]), torch.zeros(1, dtype=torch.long))
        found: list[Path] = []
        for _ in range(hops):
            paths = self._longer(paths, aim, torch.from_numpy(subgraph.inside))
            found += paths.records()
        return found

    def _longer(self, paths: Paths, aim: Tensor, inside: Tensor | None = None) -> Paths:
        """Each path with each of its edges, the `shortlist` nearest to the aim, best first."""
        edges = expand(self.graph, paths, hub_cap=self.hub_cap, backtrack=False)
        if inside is not None:
            edges = edges.select(inside[edges.tail].nonzero().flatten())
        if not len(edges):
            return paths.select(torch.zeros(0, dtype=torch.long))
        rows = self.stage.edge_vectors(edges.relation, edges.tail)
        near = _best((rows.vectors @ aim)[rows.index], 4 * self.shortlist)
        edges = edges.select(near.sort().values)
        longer = paths.extend(edges.edge_path, edges.relation, edges.tail)
        cosines = self.stage.chain_vectors(longer).dense() @ aim
        order = _best(cosines, self.shortlist)
        return longer.select(order, cosines[order])

    def _pruned(self, asked: Asked, paths: Sequence[Path], aim: Tensor) -> Step:
        """Step 6: at most `keep` paths; a cut that has nothing to cut asks nothing."""
        paths = self._nearest(distinct(paths), aim)
        for prompt, most in ((BRANCHES, self.branches), (BEST, self.keep)):
            if len(paths) > most:
                data = asked.about(self, ()) | {"most": most}
                data["paths"] = numbered([self.words(path) for path in paths])
                order = Numbers(numbers=list(range(1, most + 1)))
                (reply,) = yield [prompt.request(data, order, asked.query)]
                paths = [paths[i] for i in chosen(reply.numbers, len(paths), most)] or paths[:most]
        return list(paths)

    def _nearest(self, paths: Sequence[Path], aim: Tensor) -> list[Path]:
        """The `shortlist` paths that are nearest to the aim, best first, with their cosines as scores."""
        scored: list[tuple[float, int, Path]] = []
        for length in {len(path.relations) for path in paths}:
            rows = [i for i, path in enumerate(paths) if len(path.relations) == length]
            batch = Paths(
                torch.tensor([paths[i].entities for i in rows]),
                torch.tensor([paths[i].relations for i in rows]).reshape(len(rows), length),
                torch.zeros(len(rows), dtype=torch.long),
                torch.zeros(len(rows)),
            )
            cosines = (self.stage.chain_vectors(batch).dense() @ aim).tolist()
            for i, cosine in zip(rows, cosines, strict=True):
                scored.append((-cosine, i, Path(paths[i].entities, paths[i].relations, cosine)))
        return [path for _, _, path in sorted(scored, key=lambda one: one[:2])[: self.shortlist]]

    # Steps 7 to 9

    def _judged(self, asked: Asked, paths: Sequence[Path]) -> Step:
        """Step 7: the answer, empty where the paths do not suffice."""
        if not paths:
            return ""
        data = asked.about(self, paths)
        lines = "; ".join(map(self.words, paths))
        (summary,) = yield [SUMMARY.request(data, Told(text=lines), asked.query)]
        data["summary"] = summary.text.strip() or lines
        (verdict,) = yield [JUDGE.request(data, Verdict(sufficient=False, answer=""), asked.query)]
        return verdict.answer.strip() if verdict.sufficient else ""

    def _supplement(self, asked: Asked, subgraph: Subgraph, paths: Sequence[Path]) -> Step:
        """Step 8: shortest paths from the topics to entities that the model names."""
        (reply,) = yield [PREDICT.request(asked.about(self, paths), Names(names=[]), asked.query)]
        names = list(dict.fromkeys(name for name in map(plain, reply.names) if name))[:MAX_PREDICTED]
        found: list[Path] = []
        for matches, name in zip(self.nearest.search(names, NEAR_NAMES) if names else [], names, strict=True):
            inside = [m for m in matches if subgraph.inside[m.entity]]
            for match, cosine in zip(inside, tf_idf(name, [m.name for m in inside]), strict=True):
                if cosine > self.match:
                    for topic in subgraph.topics:
                        found += shortest_paths(self.graph, topic, match.entity, self.d_max, MAX_PAIR)
        return distinct(found)

    def _one_hop(self, paths: Sequence[Path]) -> list[Path]:
        """Step 9: the paths with each edge that leaves their end."""
        found: list[Path] = []
        for path in paths:
            walked = Paths(
                torch.tensor([path.entities]),
                torch.tensor([path.relations]).reshape(1, len(path.relations)),
                torch.zeros(1, dtype=torch.long),
                torch.zeros(1),
            )
            edges = expand(self.graph, walked, hub_cap=self.hub_cap, backtrack=False)
            found += walked.extend(edges.edge_path, edges.relation, edges.tail).records()
        return found


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

    def about(self, rival: PathsOverGraph, paths: Sequence[Path]) -> dict[str, object]:
        """What the prompts show."""
        return {
            "question": self.query.text,
            "sub_questions": list(self.sub_questions),
            "chain": list(self.chain),
            "paths": [rival.words(path) for path in paths],
        }


def in_order(topics: Sequence[int], labels: Sequence[str], chain: Sequence[str]) -> list[int]:
    """Step 2: the topics by where the chain names them first; one that it does not name keeps its place."""
    steps = [fold(step) for step in chain]

    def place(i: int) -> int:
        return next((at for at, step in enumerate(steps) if fold(labels[i]) in step), -1)

    named = sorted((i for i in range(len(topics)) if place(i) >= 0), key=place)
    turn = iter(named)
    return [topics[next(turn) if place(i) >= 0 else i] for i in range(len(topics))]


def distinct(paths: Sequence[Path]) -> list[Path]:
    """The paths without those that were there before."""
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Path] = {}
    for path in paths:
        found.setdefault((path.entities, path.relations), path)
    return list(found.values())


def tf_idf(name: str, others: Sequence[str]) -> list[float]:
    """Cosines of the TF-IDF vectors of a name and others, over three-letter pieces, blanks included.

    A piece weighs log((1 + n) / (1 + names that hold it)) + 1, as is common; n counts all names.
    """
    bags = [Counter(_pieces(text)) for text in (name, *others)]
    held = Counter(piece for bag in bags for piece in bag)
    weights = {piece: math.log((1 + len(bags)) / (1 + count)) + 1 for piece, count in held.items()}
    vectors = [{piece: count * weights[piece] for piece, count in bag.items()} for bag in bags]
    norms = [math.sqrt(sum(value * value for value in vector.values())) for vector in vectors]
    return [
        sum(value * vectors[0].get(piece, 0.0) for piece, value in vector.items()) / (norms[0] * norm)
        if norm and norms[0]
        else 0.0
        for vector, norm in zip(vectors[1:], norms[1:], strict=True)
    ]


def _pieces(text: str) -> list[str]:
    padded = f" {' '.join(fold(text).split())} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]


def _best(values: Tensor, count: int) -> Tensor:
    """Positions of the highest values, best first, the earlier one on a tie."""
    return torch.sort(values, descending=True, stable=True).indices[:count]
