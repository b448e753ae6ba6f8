"""Free paraphrases: whole questions written by hand for a kind of picture and a relation sequence.

`paraphrases_<split>.tsv` holds kind, relation ids joined by `>`, and the question. Those of test_wording
share no form with the templates and are used nowhere else; those of val_wording choose how to train. Those of
train, in which 7,206 questions of train_wide are put, were written one by one for given paths, without
templates and without sight of the forms and of both others; those that shared nine words in a row with one of
those, or a piece with a form that is reserved for the test splits, were left out or changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

import numpy as np

from vispath_lit.data.bench.select import Pick

Key = tuple[str, tuple[str, ...]]


@cache
def paraphrases(split: str) -> dict[Key, tuple[str, ...]]:
    """(kind, relation ids) to the questions of test, val or train, in the order of the file."""
    here = files("vispath_lit.data.atlas.questions")
    text = here.joinpath(f"paraphrases_{split}.tsv").read_text(encoding="utf-8")
    found: dict[Key, list[str]] = defaultdict(list)
    for line in text.splitlines()[1:]:
        kind, relations, question = line.split("\t")
        found[kind, tuple(relations.split(">"))].append(question)
    return {key: tuple(questions) for key, questions in found.items()}


def path_key(pick: Pick, names: Sequence[str]) -> Key:
    """What a paraphrase of the pick is kept under; `names` are relation ids by index."""
    return pick.kind, tuple(names[r] for r in pick.relations)


def kinds_with_paraphrase(split: str, hops: int) -> dict[tuple[str, ...], frozenset[str]]:
    """Relation sequences of a length to the kinds of picture for which there is a paraphrase."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for kind, relations in paraphrases(split):
        if len(relations) == hops:
            found[relations].add(kind)
    return {relations: frozenset(kinds) for relations, kinds in found.items()}


def paraphrased(
    split: str, picks: Sequence[Pick], names: Sequence[str], rng: np.random.Generator
) -> Iterator[tuple[Pick, str]]:
    """The picks for which there is a paraphrase, the first of each sequence first.

    Args:
        split: test or val.
        picks: the gold paths of that split.
        names: relation ids by index.
    """
    written = paraphrases(split)
    used: dict[Key, int] = defaultdict(int)
    found: list[tuple[int, int, Pick, str]] = []
    for order, at in enumerate(rng.permutation(len(picks)).tolist()):
        key = path_key(picks[at], names)
        if key in written:
            texts = written[key]
            found.append((used[key], order, picks[at], texts[used[key] % len(texts)]))
            used[key] += 1
    found.sort(key=lambda item: item[:2])  # First one of every sequence, then the second ones.
    yield from ((pick, text) for _, _, pick, text in found)
