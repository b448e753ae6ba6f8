"""Gold paths in words: questions that have no picture yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vispath_lit.data.atlas.questions.cues import CuePick, Pair
from vispath_lit.data.atlas.questions.paraphrases import Key, paraphrased, paraphrases, path_key
from vispath_lit.data.atlas.questions.pictures import Arrow, Strip
from vispath_lit.data.atlas.questions.plan import SPLITS
from vispath_lit.data.atlas.questions.wording import Worded, Writer
from vispath_lit.data.bench.leaks import tells
from vispath_lit.data.bench.select import Pick
from vispath_lit.kg.store import KnowledgeGraph

USES = 2
"""Questions of train_wide, at most, in the same free words."""

TRIES = 20
"""Wordings that are tried until one holds no name of the answer."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that has its words, and not yet its picture."""

    pick: Pick
    text: str
    new_form: bool
    tags: tuple[str, ...] = ()
    cue: Arrow | Strip | None = None
    pair: int | None = None


class Drafter:
    """Words the gold paths of one graph; every split has its own seed and its own forms."""

    def __init__(self, graph: KnowledgeGraph, seed: int) -> None:
        self._graph, self._seed = graph, seed
        self._relations = [graph.relation_id(r) for r in range(graph.num_relations)]

    def worded(self, picks: Sequence[Pick], split: str) -> list[Draft]:
        """The picks in words: in forms, and those of train_wide freely where someone wrote for the path."""
        writer, used = self._writer(split, 100), Counter[Key]()
        drafts = []
        for pick in picks:
            free = self._freely(pick, used) if split == "train_wide" else None
            if free is not None:
                drafts.append(Draft(pick, free, False))
                continue
            words = self._words(writer, pick.kind, *self._names(pick), answers=[pick.entities[-1]])
            drafts.append(Draft(pick, words.text, words.new_form))
        return drafts

    def _freely(self, pick: Pick, used: Counter[Key]) -> str | None:
        """The paraphrase for a path of training, unless it tells the answer or has had its uses.

        Args:
            used: how often a paraphrase for a path was taken so far; counts on.
        """
        key = path_key(pick, self._relations)
        texts = paraphrases("train").get(key, ())
        if used[key] >= USES * len(texts):
            return None
        text = texts[used[key] % len(texts)]
        used[key] += 1
        return None if tells(self._graph, text, pick.entities[-1]) else text

    def paraphrased(self, picks: Sequence[Pick], split: str, count: int) -> list[Draft]:
        """Up to `count` of the picks of test or val in words written by hand for their paths."""
        rng = np.random.default_rng([self._seed, {"test": 500, "val": 501}[split]])
        chosen = paraphrased(split, picks, self._relations, rng)
        kept = [
            Draft(pick, text, True)
            for pick, text in chosen
            if not tells(self._graph, text, pick.entities[-1])
        ]
        return kept[:count]

    def pairs(self, pairs: Sequence[Pair], split: str) -> list[Draft]:
        """Pairs of questions in the same words, whose cues differ."""
        writer = self._writer(split, 200)
        return [draft for serial, pair in enumerate(pairs) for draft in self._pair(pair, serial, writer)]

    def _writer(self, split: str, stream: int) -> Writer:
        rng = np.random.default_rng([self._seed, stream + SPLITS.index(split)])
        return Writer(rng, held_out=split.startswith("test"), wide=split == "train_wide")

    def _words(
        self, writer: Writer, kind: str, relations: list[str], types: list[str], answers: Sequence[int]
    ) -> Worded:
        """A wording that holds no name of an answer, if there is one.

        "What is the parliament of ..." gives itself away where the answer is Parliament.
        """
        words = writer.question(kind, relations, types)
        for _ in range(TRIES):
            if not any(tells(self._graph, words.text, answer) for answer in answers):
                break
            words = writer.question(kind, relations, types)
        return words

    def _pair(self, pair: Pair, serial: int, writer: Writer) -> list[Draft]:
        first: CuePick = pair[0]
        relations, types = self._names(first.pick)
        relations[first.hop - 1] = f"cue_{first.mode}"
        answers = [p.pick.entities[-1] for p in pair]
        words = self._words(writer, first.pick.kind, relations, types, answers=answers)
        tags = ("cue", f"cue:{first.mode}", f"cue_hop:{first.hop}")
        return [Draft(p.pick, words.text, words.new_form, tags, p.cue, serial) for p in pair]

    def _names(self, pick: Pick) -> tuple[list[str], list[str]]:
        relations = [self._relations[r] for r in pick.relations]
        return relations, self._graph.types(pick.entities)
