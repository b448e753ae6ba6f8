"""Places the topics and answers of a published data set on the user's graph: by id, by name, by meaning.

A question is kept whatever becomes of it. An answer that the graph does not hold keeps its own id, so that it
counts as a miss and is reported apart; a topic that it does not hold is left open, and a system has to find
the start itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from vispath_lit.data.supervision import has_edge
from vispath_lit.errors import ConfigError, UnknownEntityError
from vispath_lit.kg.names import NameIndex
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.progress import track
from vispath_lit.protocols import TextEncoder
from vispath_lit.types import GoldPath, Question
from vispath_lit.whole import whole_file

How = Literal["id", "name", "embedding", "lost"]
Placed = tuple[tuple[int, ...], How, float]
BATCH = 256
MAX_NAME = 500  # Characters; what is longer is a text, not a name.
MAX_LISTED = 100_000  # Entries of a report.


@dataclass(frozen=True, slots=True)
class Mention:
    """One entity as a data set names it.

    Attributes:
        ids: ids that it may have in the graph, the most certain first.
        names: equal alternatives of its name.
    """

    ids: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def own(self) -> str:
        """What stands for it where the graph does not hold it."""
        return next(iter(self.ids or self.names), "")


@dataclass(frozen=True, slots=True)
class Raw:
    """A question whose topic and answers are still the data set's own; `question` has neither."""

    question: Question
    topic: Mention | None = None
    answers: tuple[Mention, ...] = ()


@dataclass(slots=True)
class Report:
    """What became of the topics and answers of one split."""

    questions: int = 0
    topics: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    ambiguous: int = 0
    without_answer: list[str] = field(default_factory=list)
    paths_dropped: int = 0
    by_embedding: list[dict[str, object]] = field(default_factory=list)
    lost: list[dict[str, object]] = field(default_factory=list)

    def as_dict(self) -> dict[str, object]:
        """For `write`; lists are cut at 100,000 entries, counts are not."""
        return {
            "questions": self.questions,
            "topics": dict(sorted(self.topics.items())),
            "answers": dict(sorted(self.answers.items())),
            "names_of_several_entities": self.ambiguous,
            "questions_without_any_answer_in_the_graph": len(self.without_answer),
            "questions_whose_gold_paths_the_graph_lacks": self.paths_dropped,
            "placed_by_embedding": self.by_embedding[:MAX_LISTED],
            "not_placed": self.lost[:MAX_LISTED],
            "without_any_answer": self.without_answer[:MAX_LISTED],
        }

    def in_words(self) -> str:
        """One line for the terminal."""

        def counted(found: Mapping[str, int]) -> str:
            words = {"id": "by id", "name": "by name", "embedding": "by embedding", "lost": "not placed"}
            said = ", ".join(f"{found[how]} {word}" for how, word in words.items() if found[how])
            return said or "none named"

        return (
            f"{self.questions} questions; topics: {counted(self.topics)}; answers: {counted(self.answers)}; "
            f"{len(self.without_answer)} questions without any answer in the graph (they count as misses)"
        )


class Regrounder:
    """Finds mentions in a graph.

    Args:
        encoder: for names that no entity bears; None looks no further.
        threshold: least cosine of a name's nearest label.
        cache_dir: where vectors of the graph's labels are kept.
        links: further ids by what a data set says (a page's address or title).

    Raises:
        ConfigError: a threshold outside (0, 1].
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        encoder: TextEncoder | None = None,
        threshold: float = 0.9,
        cache_dir: Path | None = None,
        links: Mapping[str, str] | None = None,
    ) -> None:
        if not 0 < threshold <= 1:
            raise ConfigError(f"threshold is {threshold}; expected a cosine above 0 and up to 1, or null")
        self.graph = graph
        self.threshold = threshold
        self.similar = encoder is not None
        self.links = links or {}
        self._names = NameIndex(graph, encoder, cache_dir)

    def questions(self, raws: Sequence[Raw], *, training: bool) -> tuple[list[Question], Report]:
        """The questions with topic and answer ids of the graph, and what became of each mention.

        Args:
            training: gold paths that the graph lacks are left out, so that weak ones take their place.
        """
        mentions = [m for raw in raws for m in (*([raw.topic] if raw.topic else []), *raw.answers)]
        placed = self.place(list(dict.fromkeys(mentions)))
        report = Report(questions=len(raws))
        return [self._question(raw, placed, report, training) for raw in raws], report

    def place(self, mentions: Sequence[Mention]) -> dict[Mention, Placed]:
        """For each distinct mention the entities, how they were found, and how near their name is (0 to 1).

        All entities of an equal name are found, those whose label it is first, then by index.
        """
        ids = [id for one in mentions for id in self._ids(one)]
        index = dict(zip(ids, self.graph.entity_indices(ids).tolist(), strict=True))
        placed: dict[Mention, Placed] = {}
        for one in track(mentions, "placing topics and answers") if mentions else ():
            known = [index[id] for id in self._ids(one) if index[id] >= 0][:1]
            names = [name for name in one.names if len(name) <= MAX_NAME]
            named = known or [entity for name in names for entity in self._names.exact(name)]
            how: How = "id" if known else "name" if named else "lost"
            placed[one] = tuple(dict.fromkeys(named)), how, float(bool(named))
        if self.similar:
            self._by_embedding(placed)
        return placed

    def _ids(self, mention: Mention) -> list[str]:
        said = (*mention.ids, *mention.names)
        return list(dict.fromkeys([*mention.ids, *(self.links[one] for one in said if one in self.links)]))

    def _by_embedding(self, placed: dict[Mention, Placed]) -> None:
        """The entity of the nearest label, where one is near enough; numbers all are, and are left out."""
        left = [
            (one, name)
            for one, (_, how, _) in placed.items()
            if how == "lost"
            for name in one.names
            if len(name) <= MAX_NAME and any(sign.isalpha() for sign in name)
        ]
        for first in range(0, len(left), BATCH):
            part = left[first : first + BATCH]
            for (one, _), near in zip(part, self._names.search([name for _, name in part], k=1), strict=True):
                best = near[0] if near else None
                if best and best.score >= self.threshold and best.score > placed[one][2]:
                    placed[one] = (best.entity,), "embedding", float(best.score)

    def _question(
        self, raw: Raw, placed: Mapping[Mention, Placed], report: Report, training: bool
    ) -> Question:
        question = raw.question
        topic = None
        if raw.topic is not None:
            entities = self._noted(question, "topic", raw.topic, placed[raw.topic], report)
            topic = self.graph.entity_id(entities[0]) if entities else None
        ids: list[str] = []
        found = False
        for one in raw.answers:
            entities = self._noted(question, "answer", one, placed[one], report)
            found = found or bool(entities)
            ids += self.graph.entity_ids(entities) if entities else [one.own]
        if raw.answers and not found:
            report.without_answer.append(question.id)
        paths = question.gold_paths
        walked = tuple(path for path in paths if topic is not None and self._walks(topic, path))
        report.paths_dropped += bool(paths) and not walked
        return replace(
            question,
            topic_entity=topic,
            answer_ids=tuple(dict.fromkeys(id for id in ids if id)),
            gold_paths=walked if training else paths,
        )

    def _noted(
        self, question: Question, role: str, mention: Mention, found: Placed, report: Report
    ) -> tuple[int, ...]:
        entities, how, score = found
        (report.topics if role == "topic" else report.answers)[how] += 1
        report.ambiguous += len(entities) > 1
        said: dict[str, object] = {"question": question.id, "role": role}
        said |= {"ids": list(mention.ids), "names": list(mention.names)}
        if how == "lost":
            report.lost.append(said)
        elif how == "embedding":
            said |= {"entity": self.graph.entity_id(entities[0]), "label": self.graph.label(entities[0])}
            report.by_embedding.append(said | {"cosine": round(score, 4)})
        return entities

    def _walks(self, topic: str, path: GoldPath) -> bool:
        """Whether each step of a path is an edge of the graph."""
        here = self.graph.entity_index(topic)
        try:
            for name, target in path:
                tail = self.graph.entity_index(target)
                if not has_edge(self.graph, here, self.graph.relation_index(name), tail):
                    return False
                here = tail
        except UnknownEntityError:
            return False
        return True


def write_report(file: Path, reports: Mapping[str, object]) -> None:
    """Writes the reports as JSON."""
    with whole_file(file) as partial, partial.open("w", encoding="utf8", errors="replace") as out:
        json.dump(reports, out, ensure_ascii=False, indent=1)
