"""Makes the questions of Atlas: gold paths, splits, words and pictures, in this order."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vispath_lit.data.atlas.questions.assemble import Gallery, assemble
from vispath_lit.data.atlas.questions.cues import Pair, PairCaps, choose_pairs, cue_pairs, read_cues
from vispath_lit.data.atlas.questions.drafts import Draft, Drafter
from vispath_lit.data.atlas.questions.forms import phrases
from vispath_lit.data.atlas.questions.gold import GoldPaths
from vispath_lit.data.atlas.questions.pictures import draw
from vispath_lit.data.atlas.questions.plan import SPLITS, Plan
from vispath_lit.data.atlas.questions.starts import find_starts
from vispath_lit.data.atlas.questions.statistics import fingerprint, split_statistics, yields
from vispath_lit.data.atlas.questions.views import ViewRanges
from vispath_lit.data.bench.walks import Walks
from vispath_lit.data.questions import write_questions
from vispath_lit.kg.store import KnowledgeGraph

log = logging.getLogger(__name__)

POOL_OF = {"train": "train", "train_wide": "train", "val": "val"}
"""The pool of each split's starts; every test split takes the test pool."""


def make_questions(
    graph: KnowledgeGraph, cues: Path, out: Path, *, workers: int = 1, plan: Plan | None = None
) -> dict[str, object]:
    """Writes `<split>.jsonl` and `images/` into `out` and returns their statistics.

    Args:
        graph: the built store of Atlas.
        cues: the `cues.json` of its graph.
        workers: processes that draw pictures; no byte depends on it.
        plan: sizes; the usual ones where None.
    """
    plan = plan or Plan()
    maker, ranges = Maker(graph, cues, plan), ViewRanges()
    gallery = Gallery(maker.starts, out / "images", plan)
    questions = assemble(graph, maker.drafts(), gallery, plan.seed)
    (out / "images").mkdir(parents=True, exist_ok=True)
    draw(gallery.tasks, ranges, workers)
    for split, members in questions.items():
        if members:
            write_questions(out / f"{split}.jsonl", members)
    return {
        "splits": {s: split_statistics(members) for s, members in questions.items()},
        "yields": maker.yields,
        "pictures": len(gallery.tasks),
        "view_ranges": ranges.as_dict(),
        "plan": plan.as_dict(),
        "fingerprint": fingerprint(out),
    }


class Maker:
    """Chooses and words the questions of every split."""

    def __init__(self, graph: KnowledgeGraph, cues: Path, plan: Plan) -> None:
        self.starts = find_starts(graph, phrases().show.keys(), plan.seed)
        self.yields: dict[str, object] = {}
        self._graph, self._plan = graph, plan
        self._cues = read_cues(cues, graph, plan.seed)
        self._gold = GoldPaths(graph, self.starts, plan)
        self._drafter = Drafter(graph, plan.seed)

    def drafts(self) -> dict[str, list[Draft]]:
        """The worded questions of every split, not yet in their final order."""
        found: dict[str, list[Draft]] = {}
        for pool in self._cues:
            walks = self._gold.walks(self.starts.of(pool))
            self._note_yields(pool, walks)
            for split in self._plan.hops:
                if POOL_OF.get(split, "test") == pool:
                    picks = self._gold.picks(split, walks)
                    found[split] = self._drafter.worded(picks, split)
                    if wording := self._plan.wording.get(split):
                        found[f"{split}_wording"] = self._drafter.paraphrased(picks, split, wording)
            for split in self._plan.pairs:
                if POOL_OF.get(split, "test") == pool:
                    pairs = self._pairs(split, pool, walks)
                    found.setdefault(split, []).extend(self._drafter.pairs(pairs, split))
        return {split: found[split] for split in SPLITS if split in found}

    def _note_yields(self, pool: str, walks: Sequence[Walks]) -> None:
        """The yield at each hop, known before anything is chosen."""
        found = yields(walks)
        self.yields[pool] = found
        for hops, counts in found.items():
            log.info("%s starts, %s hops: %s", pool, hops, counts)

    def _pairs(self, split: str, pool: str, walks: Sequence[Walks]) -> list[Pair]:
        """Pairs of gold paths that the same words and different cues select."""
        rng = np.random.default_rng([self._plan.seed, 600 + SPLITS.index(split)])
        usable = self._gold.seen_in_training(walks)
        groups = cue_pairs(self._graph, usable, self.starts, self._cues[pool])
        self.yields[f"{split}_cue_groups"] = {f"{mode}_{hop}": len(g) for (mode, hop), g in groups.items()}
        count = self._plan.pairs[split]
        caps = PairCaps(count, max(2, count // 25), max(4, count // 20), max(8, count // 12))
        return choose_pairs(groups, caps, rng)
