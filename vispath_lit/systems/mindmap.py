"""MindMap (Wen et al., ACL 2024): a language model reads paths and neighbours and draws its own map of them.

1. The model extracts the entities that the question speaks of; a granted or grounded start joins them, first.
2. Each becomes the graph's entity with the nearest name by embedding, the next nearest where another name
   has taken that one. A name of the start itself stays the start.
3. All shortest paths of at most `hops` hops between consecutive entities; where some lead through another
   of the entities, those win, and that entity is no further goal.
4. An entity that cannot be reached begins a new segment.
5. `paths` of them are kept, taken from the segments in turn.
6. The first `neighbours` one-hop lines of the entities, as many as there are (the original leaves fewer
   undefined).
7. The model puts both kinds of evidence into words.
8. The model answers with a cited chain of inference and a decision tree.

Fallbacks of replies that are not valid: no entity but the start (step 1), the evidence as it is (7),
abstention (8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path as FilePath

from pydantic import BaseModel

from vispath_lit.chat.prompt import Prompt
from vispath_lit.errors import at_least
from vispath_lit.kg.frontier import follow, leaving
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.shortest import shortest_paths
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import ChatBackend, Grounder, QuestionAnalyzer, TextEncoder
from vispath_lit.systems.conversation import Talk
from vispath_lit.systems.replies import Names, Told, numbered, plain
from vispath_lit.systems.walking import Walking, joined
from vispath_lit.types import Candidate, Path, Query

MAX_ENTITIES = 8  # of a question
MAX_PAIR = 20  # shortest paths between two entities that are looked at
MAX_SEGMENT = 100  # joined paths of a segment
MAX_TAILS = 10  # neighbours that one line names


class Inference(BaseModel):
    """The answer with what led to it."""

    answer: str
    inference_chain: str
    decision_tree: str


EXTRACT = Prompt(
    step="mindmap_entities",
    instructions="""
`names` are the things that `question` speaks of by name: people, places, works, kinds of things. Write
each as the question does. A thing that is only shown in a picture, or only asked for, has no name there
and is left out.
""",
    reply=Names,
)
PATHS = Prompt(
    step="mindmap_paths",
    instructions="""
Put `paths` of a knowledge graph into plain sentences, number by number, and add nothing that they do not
say. `text` holds the sentences.
""",
    reply=Told,
    max_tokens=512,
)
NEIGHBOURS = Prompt(
    step="mindmap_neighbours",
    instructions="""
Put `neighbours`, lines of a knowledge graph with an entity, a relation and what it leads to, into plain
sentences, number by number, and add nothing that they do not say. `text` holds the sentences.
""",
    reply=Told,
    max_tokens=512,
)
ANSWER = Prompt(
    step="mindmap_answer",
    instructions="""
Answer `question`, which is about `start` where that is not empty, from `path_evidence`,
`neighbour_evidence` and what you know. `inference_chain` tells step by step how the evidence leads to the
answer and cites its kind and number; `decision_tree` draws the same as a tree of indented lines; `answer`
is the answer alone: a name, not a sentence.
""",
    reply=Inference,
    max_tokens=768,
)


class MindMap(Walking):
    """The `System`.

    Args:
        hops: of a shortest path, at most.
        paths: that are kept as evidence.
        neighbours: lines that are kept as evidence.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        text_encoder: TextEncoder,
        chat: ChatBackend,
        analyzer: QuestionAnalyzer,
        grounder: Grounder,
        cache_dir: FilePath | str | None = None,
        hops: int = 5,
        paths: int = 5,
        neighbours: int = 5,
        batch_size: int = 32,
        name: str = "MindMap",
    ) -> None:
        super().__init__(graph, chat, analyzer, grounder, batch_size, name)
        at_least(1, "system", hops=hops, paths=paths, neighbours=neighbours)
        self.nearest = NameIndex(graph, text_encoder, cache_dir)
        self.hops = hops
        self.paths = paths
        self.neighbours = neighbours

    def talk(self, query: Query, candidates: Sequence[Candidate]) -> Talk:
        start = self.graph.label(candidates[0].entity) if candidates else ""
        (found,) = yield [
            EXTRACT.request({"question": query.text}, Names(names=[]), query, most=MAX_ENTITIES)
        ]  # 1
        entities = self._linked([c.entity for c in candidates[:1]], found.names)  # 2
        paths = self._balanced(list(self._segments(entities)))  # 3 to 5
        lines = list(islice(self._lines(entities), self.neighbours))  # 6
        walked = [self.words(path) for path in paths]
        told = {"path_evidence": cited(walked), "neighbour_evidence": cited(lines)}
        requests, kinds = [], []
        for prompt, key, kind, texts in (
            (PATHS, "paths", "path_evidence", walked),
            (NEIGHBOURS, "neighbours", "neighbour_evidence", lines),
        ):
            if texts:  # 7
                requests.append(prompt.request({key: numbered(texts)}, Told(text=told[kind]), query))
                kinds.append(kind)
        replies = (yield requests) if requests else []
        told |= {kind: reply.text.strip() or told[kind] for kind, reply in zip(kinds, replies, strict=True)}
        data: dict[str, object] = {"question": query.text, "start": start, **told}
        nothing = Inference(answer="", inference_chain="", decision_tree="")
        (said,) = yield [ANSWER.request(data, nothing, query)]  # 8
        return self.predicted(
            said.answer,
            "terminal" if walked or lines else "image_only",
            paths=paths,
            candidates=candidates,
            statement="\n".join(filter(None, (said.inference_chain.strip(), said.decision_tree.strip()))),
        )

    def _linked(self, first: Sequence[int], names: Sequence[str]) -> list[int]:
        """Step 2: the start, then for each name in turn the nearest entity that no name before it has."""
        wanted = list(dict.fromkeys(name for name in map(plain, names) if name))[:MAX_ENTITIES]
        taken: list[int] = []  # of MAX_ENTITIES nearest ones at least one is free for the last name, too
        for matches in self.nearest.search(wanted, MAX_ENTITIES) if wanted else []:
            taken += [match.entity for match in matches if match.entity not in taken][:1]
        return list(dict.fromkeys([*first, *taken]))

    def _segments(self, entities: Sequence[int]) -> Iterator[list[Path]]:
        """Steps 3 and 4: the joined paths of each segment."""
        left = list(entities)
        while left:
            here = left.pop(0)
            pieces: list[list[Path]] = []
            while left:
                found = shortest_paths(self.graph, here, left[0], self.hops, MAX_PAIR)
                if not found:
                    break
                goal = left.pop(0)
                through = [path for path in found if set(path.entities[1:-1]) & set(left)]
                pieces.append(through or found)
                passed = {entity for path in through for entity in path.entities}
                left = [entity for entity in left if entity not in passed]
                here = goal
            if pieces:
                yield [joined(parts) for parts in islice(product(*pieces), MAX_SEGMENT)]

    def _balanced(self, segments: Sequence[Sequence[Path]]) -> list[Path]:
        """Step 5: the first path of each segment, then the second of each, and so on."""
        longest = max(map(len, segments), default=0)
        turns = (segment[turn] for turn in range(longest) for segment in segments if turn < len(segment))
        return list(islice(turns, self.paths))

    def _lines(self, entities: Sequence[int]) -> Iterator[str]:
        """Step 6: for each entity and relation a line with the first of its neighbours."""
        for entity in entities:
            for relation in leaving(self.graph, entity):
                tails = self.graph.labels(follow(self.graph, entity, [relation])[:MAX_TAILS])
                label = self.graph.relation_label(relation)
                yield f"{self.graph.label(entity)} -> {label} -> {', '.join(tails)}"


def cited(lines: Sequence[str]) -> str:
    """The lines with numbers from 1, by which they can be cited."""
    return "; ".join(f"{number}. {line}" for number, line in enumerate(lines, 1))
