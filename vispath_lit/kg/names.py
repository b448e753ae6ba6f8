"""Finds entities by name: exactly, as mentions inside a question, and by embedding."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vispath_lit.errors import ConfigError
from vispath_lit.kg.folding import fold, strip_accents
from vispath_lit.kg.name_vectors import NameMatch, NameVectors
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.protocols import TextEncoder

MAX_WORDS = 8  # Words of the longest name that is looked for in a text.
MAX_SIGNS = 16  # The same in scripts without blanks, where each sign stands for itself.
MAX_TEXT = 20_000  # Characters of a text that are searched.
MAX_PUNCTUATION = 3  # Signs on either side of a word that may belong to a name.
BLIND = 0.95  # Cosine from which on two names should look alike, too,
ALIKE = 0.5  # that is, share so much of their letters,
COMPARED = 200  # of which so many are looked at, as that takes their product and names may be texts.
MIN_LENGTH = 2  # Characters of the shortest name that counts as a mention.

# Scripts written without blanks between words (Thai to Khmer, kana, Han, Hangul with its attached particles).
_SIGN = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
# Marks that belong to a word though they are no letters: accents, vowel points, Indic vowels.
_MARK = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0dff"
_TOKEN = re.compile(f"(?P<sign>[{_SIGN}])|(?:(?![{_SIGN}])[\\w{_MARK}])+")
_PUNCTUATION = re.compile(f"[^\\s\\w{_MARK}]")


class Mention(NamedTuple):
    """A name inside a text.

    Attributes:
        span: start and end in the text.
        entities: all entities of that name, those whose label it is first, then by index.
    """

    span: tuple[int, int]
    entities: tuple[int, ...]


class NameIndex:
    """Labels and aliases of a graph, looked up in its memory-mapped tables.

    Two names are equal if they fold to the same text (Unicode form, case and white space). Where no name is,
    accents are ignored as well.

    Args:
        encoder: for `search`; without one only exact look-up works.
        cache_dir: where name vectors are kept, by fingerprints of graph and encoder, for later graphs to take
            over; None keeps none.
        aliases: `search` also looks among aliases; the exact look-up always does.
    """

    def __init__(
        self,
        graph: KnowledgeGraph,
        encoder: TextEncoder | None = None,
        cache_dir: str | Path | None = None,
        aliases: bool = False,
    ) -> None:
        self.graph = graph
        self._encoder = encoder
        self._cache_dir = None if cache_dir is None else Path(cache_dir)
        self._aliases = aliases
        self._names = graph.table("name")
        self._bare = graph.table("bare")

    def exact(self, name: str) -> tuple[int, ...]:
        """The entities of that name, those whose label it is first, then by index; empty where none is."""
        return self._resolve(*self._candidates([fold(name)])[0])

    def bears(self, entity: int, name: str) -> bool:
        """Whether the entity's label or one of its aliases is that name."""
        folded = fold(name)
        return any(fold(own) == folded for own in (self.graph.label(entity), *self.graph.aliases(entity)))

    def bearers(self, name: str) -> list[NameMatch]:
        """The entities of `exact` with the label or alias that is meant, as the graph writes it; score 1."""
        wanted, candidates = self._candidates([fold(name)])[0]
        return [
            NameMatch(entity, self._written(entity, wanted), 1.0)
            for entity in self._resolve(wanted, candidates)
        ]

    def find(self, texts: Sequence[str], k: int = 10) -> list[list[NameMatch]]:
        """For each text at most k entities with the name they were found by, best first.

        Those of that very name (as in `exact`) come first, with score 1; then those with the nearest names.

        Raises:
            ConfigError: the index has no encoder, or k is below 1.
        """
        near = self.search(texts, k)
        found = []
        for text, others in zip(texts, near, strict=True):
            same = self.bearers(text)
            entities = {match.entity for match in same}
            told = [_told_apart(text, match) for match in others if match.entity not in entities]
            told.sort(key=lambda match: -match.score)  # stable: ties stay in the index's order
            found.append([*same, *told][:k])
        return found

    def find_mentions(self, text: str) -> list[Mention]:
        """The longest names in a text, left to right and disjoint; of equally long ones the first wins."""
        spans = list(_windows(text))
        found = self._candidates([fold(text[start:end]) for start, end in spans])
        hits = [i for i, (_, candidates) in enumerate(found) if len(candidates)]
        hits.sort(key=lambda i: (spans[i][0] - spans[i][1], spans[i][0]))
        taken = np.zeros(len(text), dtype=bool)
        mentions = []
        for i in hits:
            start, end = spans[i]
            if not taken[start:end].any() and (entities := self._resolve(*found[i])):
                taken[start:end] = True
                mentions.append(Mention((start, end), entities))
        return sorted(mentions)

    def search(self, texts: Sequence[str], k: int = 20) -> list[list[NameMatch]]:
        """For each text at most k entities with the nearest names by cosine, best first.

        Raises:
            ConfigError: the index has no encoder, or k is below 1.
        """
        if k < 1:
            raise ConfigError(f"k is {k}; expected at least 1")
        return self._vectors.search(texts, k)

    @cached_property
    def _vectors(self) -> NameVectors:
        if self._encoder is None:
            raise ConfigError("this NameIndex has no text encoder; give it one to search by embedding")
        return NameVectors(self.graph, self._encoder, self._cache_dir, self._aliases)

    def _candidates(self, folded: list[str]) -> list[tuple[str, NDArray[np.int32]]]:
        """For each folded name the text that a name must have and the entities whose hash says so."""
        bare = [strip_accents(name) for name in folded]
        result = []
        for name, stripped, same, same_bare, accented in zip(
            folded,
            bare,
            self._names.find(folded),
            self._names.find(bare),
            self._bare.find(bare),
            strict=True,
        ):
            if len(same) and self._resolve(name, same):
                result.append((name, same))
            else:
                result.append((stripped, np.union1d(same_bare, accented)))
        return result

    def _resolve(self, name: str, candidates: NDArray[np.int32]) -> tuple[int, ...]:
        """The candidates that bear `name`, folded or folded without accents: by label, then by alias."""
        ranked = []
        for entity in candidates.tolist():
            if _equal(self.graph.label(entity), name):
                ranked.append((0, entity))
            elif any(_equal(alias, name) for alias in self.graph.aliases(entity)):
                ranked.append((1, entity))
        return tuple(entity for _, entity in sorted(ranked))

    def _written(self, entity: int, name: str) -> str:
        """The label or alias of an entity that folds to `name`, as it is written in the graph."""
        names = (self.graph.label(entity), *self.graph.aliases(entity))
        return next(written for written in names if _equal(written, name))


def _told_apart(text: str, match: NameMatch) -> NameMatch:
    """The match; with the share of letters in common as its score, where the encoder cannot read them.

    An encoder gives all names in a script that it does not know one vector.
    """
    if match.score < BLIND:
        return match
    asked, found = fold(text[:COMPARED]), fold(match.name[:COMPARED])
    alike = SequenceMatcher(None, asked, found, autojunk=False).ratio()
    return match if alike >= ALIKE else match._replace(score=alike)


def _equal(written: str, name: str) -> bool:
    folded = fold(written)
    return folded == name or strip_accents(folded) == name


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Spans of up to MAX_WORDS words; also with the punctuation that touches them ("U.S.", "C++")."""
    tokens = list(_TOKEN.finditer(text, 0, MAX_TEXT))
    for i, first in enumerate(tokens):
        starts = [first.start() - n for n in range(_touching(text, first.start() - 1, -1) + 1)]
        limit = MAX_SIGNS if first["sign"] else MAX_WORDS
        for last in tokens[i : i + limit]:
            ends = [last.end() + n for n in range(_touching(text, last.end(), 1) + 1)]
            yield from ((start, end) for start in starts for end in ends if end - start >= MIN_LENGTH)


def _touching(text: str, position: int, step: int) -> int:
    """How many signs from `position` on are punctuation, at most MAX_PUNCTUATION."""
    count = 0
    while count < MAX_PUNCTUATION and 0 <= position < len(text) and _PUNCTUATION.match(text[position]):
        count, position = count + 1, position + step
    return count
