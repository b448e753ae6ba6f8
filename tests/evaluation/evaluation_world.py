"""A system that answers by a rule, an encoder without weights, and questions about the toy graph."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path as FilePath

import torch
from torch import Tensor

from vispath_lit.kg.frontier import expand, follow
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import (
    Candidate,
    Cost,
    HopTrace,
    Path,
    Paths,
    Prediction,
    Query,
    Question,
)


class TrigramEncoder:
    """Texts as unit vectors of hashed character trigrams."""

    dim = 128
    fingerprint = "trigrams"

    def encode(self, texts: Sequence[str]) -> Tensor:
        vectors = torch.zeros(len(texts), self.dim)
        for row, text in enumerate(texts):
            padded = f"  {text.lower()} "
            for i in range(len(padded) - 2):
                vectors[row, zlib.crc32(padded[i : i + 3].encode()) % self.dim] += 1
        return torch.nn.functional.normalize(vectors, dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class WordWalker:
    """Starts at the entity that the question names and walks the relations whose first word it holds.

    The relation that is named last is walked first. `inverse=False` makes a weaker system. All scores are
    negative. A question that names no entity is answered from the picture, if there is one.
    """

    def __init__(self, graph: KnowledgeGraph, name: str = "walker", *, inverse: bool = True) -> None:
        self.graph = graph
        self.name = name
        self.inverse = inverse
        self.asked: list[Query] = []

    def answer(self, queries: Sequence[Query]) -> list[Prediction]:
        self.asked += queries
        return [self._one(query) for query in queries]

    def _one(self, query: Query) -> Prediction:
        start = query.topic if query.topic is not None else self._named(query.text)
        cost = Cost(llm_calls=1, vlm_calls=int(query.image is not None), text_tokens=len(query.text.split()))
        if start is None:
            if query.image is None:
                return Prediction("", None, "abstained", cost=cost)
            return Prediction("a flag", None, "image_only", confidence=0.1, cost=cost)
        words = self._relation_words(query.text)
        depth = query.depth or max(1, len(words))
        candidates = (Candidate(start, -1.0, "topic" if query.topic is not None else "name"),)
        trace: list[HopTrace] = []
        kept = [Path((start,), ())]
        for hop in range(depth):
            trace.append(self._hop(kept, words[-1 - hop] if hop < len(words) else ""))
            kept = list(trace[-1].kept)
        if not kept:
            return Prediction(
                "", None, "abstained", candidates=candidates, depth=depth, trace=tuple(trace), cost=cost
            )
        ranked = tuple(dict.fromkeys(path.end for path in kept))
        reached = follow(self.graph, start, kept[0].relations).tolist()
        return Prediction(
            answer=self.graph.label(kept[0].end),
            answer_entity=kept[0].end,
            provenance="stopped",
            confidence=1 / (1 + len(reached)),
            ranked=ranked,
            answer_set=tuple(reached),
            paths=tuple(kept),
            candidates=candidates,
            depth=depth,
            trace=tuple(trace),
            cost=cost,
        )

    def _named(self, text: str) -> int | None:
        named = [i for i in range(self.graph.num_entities) if self.graph.label(i).lower() in text.lower()]
        return max(named, key=lambda i: (len(self.graph.label(i)), -i)) if named else None

    def _relation_words(self, text: str) -> list[str]:
        known = {self._word(r) for r in range(self.graph.num_relations)}
        return [word for word in re.findall(r"\w+", text.lower()) if word in known]

    def _word(self, relation: int) -> str:
        return self.graph.relation_label(relation % self.graph.num_relations).split()[0]

    def _hop(self, kept: Sequence[Path], word: str) -> HopTrace:
        if not kept:
            return HopTrace(word, 0, (), (), (), 0.0)
        entities = torch.tensor([path.entities for path in kept])
        relations = torch.tensor([path.relations for path in kept], dtype=torch.long).reshape(len(kept), -1)
        zeros = torch.zeros(len(kept))
        frontier = expand(self.graph, Paths(entities, relations, zeros.long(), zeros), inverse=self.inverse)
        found = []
        for parent, r, tail in zip(
            frontier.edge_path.tolist(), frontier.relation.tolist(), frontier.tail.tolist(), strict=True
        ):
            if word == self._word(r):
                old = kept[parent]
                found.append(Path((*old.entities, tail), (*old.relations, r), -1.0 - r / 100))
        chains = sorted(found, key=lambda path: -path.score)[:5]
        return HopTrace(
            word, len(frontier), tuple(found), tuple(chains), tuple(chains[:3]), float(bool(found))
        )


def toy_questions(folder: FilePath) -> list[Question]:
    """Nine questions about the toy graph; `folder` holds its pictures."""
    return [
        Question(
            id="q1",
            text="What is the capital of the country that borders Switzerland?",
            answers=("Paris", "Berlin"),
            answer_ids=("par", "ber"),
            topic_entity="ch",
            gold_paths=((("borders", "fr"), ("capital", "par")), (("borders", "de"), ("capital", "ber"))),
            hops=2,
            tags=("place",),
        ),
        Question(
            id="q2",
            text="What is the currency of Monaco?",
            answers=("euro",),
            answer_ids=("eur",),
            topic_entity="mc",
            gold_paths=((("currency", "eur"),),),
            hops=1,
            tags=("money",),
        ),
        Question(
            id="q3",
            text="Which river flows through Germany?",
            answers=("Rhine",),
            answer_ids=("rhi",),
            topic_entity="de",
            gold_paths=((("~flows_through", "rhi"),),),
            hops=1,
            tags=("place", "inverse"),
        ),
        Question(
            id="q4",
            text="What is the capital of Atlantis?",
            answers=("Poseidonia",),
            answer_ids=("pos",),
            topic_entity="lone",
            hops=1,
        ),
        Question(
            id="q5",
            text="What is the largest city of France?",
            answers=("City of Light",),
            topic_entity="fr",
            gold_paths=((("largest_city", "par"),),),
            hops=1,
        ),
        Question(
            id="q6",
            text="What is the capital of the country whose flag is shown?",
            image=folder / "images" / "fr.png",
            answers=("Paris",),
            answer_ids=("par",),
            topic_entity="fr",
            gold_paths=((("capital", "par"),),),
            hops=1,
            tags=("picture",),
        ),
        Question(id="q7", text="Which currency does Germany have?"),
        Question(
            id="q8",
            text="Which country is located in Europe?",
            answers=("France", "Germany", "Switzerland", "Monaco"),
            answer_ids=("fr", "de", "ch", "mc"),
            topic_entity="eu",
            gold_paths=((("~located_in", "fr"),), (("~located_in", "de"),)),
            hops=1,
        ),
        Question(
            id="q9",
            text="Which river flows through the country that borders Monaco?",
            answers=("Rhin",),
            answer_ids=("rhi",),
            topic_entity="mc",
            gold_paths=((("borders", "fr"), ("~flows_through", "rhi")),),
            hops=2,
            tags=("inverse",),
        ),
    ]
