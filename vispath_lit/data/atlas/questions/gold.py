"""The gold paths that may become questions, and which of them each split takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.atlas.questions.forms import phrases
from vispath_lit.data.atlas.questions.paraphrases import kinds_with_paraphrase
from vispath_lit.data.atlas.questions.plan import SPLITS, HoldOut, Plan
from vispath_lit.data.atlas.questions.starts import Starts
from vispath_lit.data.atlas.relations import relations_by_id
from vispath_lit.data.bench.select import Caps, Pick, Picker, Wanted
from vispath_lit.data.bench.walks import Ints, Walks, functional_steps, shortest_walks
from vispath_lit.kg.store import KnowledgeGraph

DEPTH = 4


@dataclass(frozen=True, slots=True)
class Paraphrased:
    """Which paths that have a free paraphrase a split takes before all others.

    Attributes:
        written: the split whose paraphrases they are.
        portion: share of the split's questions.
        rounds: in each, how many of these questions have the same sequence by its end, at most.
    """

    written: str
    portion: float
    rounds: tuple[int, ...]


PARAPHRASED = {
    "test": Paraphrased("test", 1 / 6, (3,)),
    # Each sequence once, then twice, and a third time where it has texts for several kinds of picture.
    "train_wide": Paraphrased("train", 0.4, (1, 2, 3)),
}


class GoldPaths:
    """Finds and chooses gold paths on one graph."""

    def __init__(self, graph: KnowledgeGraph, starts: Starts, plan: Plan) -> None:
        self._graph, self._starts, self._plan = graph, starts, plan
        self._relations = [graph.relation_id(r) for r in range(graph.num_relations)]
        self._known: Ints = np.zeros(0, dtype=np.int64)
        self._held = HoldOut.of(graph, plan.seed)
        self._border_like = [r for r, name in enumerate(self._relations) if "border" in name]
        self._in_country = graph.relation_index("in_country")
        self._types = np.array(graph.column("type").to_pylist(), dtype=object)

    def walks(self, starts: Ints) -> list[Walks]:
        """All gold paths from the starts by length, ending where a question may end."""
        known, words = relations_by_id(), phrases()
        middle = np.array([r in words.of or r in words.ask for r in self._relations])
        last = np.array([r in words.ask and known[r].askable for r in self._relations])
        between = np.array([r in words.of for r in self._relations])
        found = []
        for walks in shortest_walks(self._graph, functional_steps(self._graph, middle), starts, DEPTH):
            fits = last[walks.relations[:, -1]] & between[walks.relations[:, :-1]].all(axis=1)
            found.append(walks.select(fits & self._readable(walks)))
        return found

    def _readable(self, walks: Walks) -> NDArray[np.bool_]:
        """`[W]`: walks that do not go in circles of words.

        No relation comes twice, at most two steps go over a border, and from a county at most one. Nobody
        is asked for the country of an American state.
        """
        relations = np.sort(walks.relations, axis=1)
        distinct = (np.diff(relations, axis=1) != 0).all(axis=1)
        border = np.isin(walks.relations, self._border_like).sum(axis=1)
        county = self._types[walks.entities[:, 0]] == "county"
        american = np.isin(self._types[walks.entities[:, -2]], ("us_state", "county"))
        obvious = american & (walks.relations[:, -1] == self._in_country)
        return np.asarray(distinct & ~obvious & (border <= np.where(county, 1, 2)))

    def seen_in_training(self, walks: Sequence[Walks]) -> list[Walks]:
        """The walks without a relation or a relation sequence that is kept out of training."""
        usable = [w.select(~self._held.new_relation(w)) for w in walks]
        return [w.select(~self._held.new_sequence(w)) for w in usable]

    def picks(self, split: str, walks: Sequence[Walks]) -> list[Pick]:
        """The gold paths of one split; training comes first, as the others use its relations only."""
        rng = np.random.default_rng([self._plan.seed, SPLITS.index(split)])
        caps = self._plan.caps.get(split, Caps())
        picker = Picker(self._plan.size(split), self._starts.kinds(), caps, rng)
        for hops, count in sorted(self._plan.hops[split].items(), reverse=True):
            part = walks[hops - 1]
            relation, sequence = self._held.new_relation(part), self._held.new_sequence(part)
            if split == "test_relation":
                part = part.select(relation)
            elif split == "test_composition":
                part = part.select(sequence & ~relation)
            else:
                part = part.select(~sequence & ~relation)
            if split != "train":
                part = part.select(np.asarray(np.isin(part.relations, self._known).all(axis=1)))
            asked = 0
            if first := PARAPHRASED.get(split):
                wanted = self._paraphrased(first.written, hops)
                for most in first.rounds:
                    asked += picker.take(part, int(count * first.portion) - asked, wanted, most)
            picker.take(part, count - asked)
        if split == "train":
            trained = {r for pick in picker.picks for r in pick.relations}
            self._known = np.array(sorted(trained | set(self._held.relations.tolist())), dtype=np.int64)
        return picker.picks

    def _paraphrased(self, written: str, hops: int) -> Wanted:
        """Relation sequences with the kinds of picture for which a free paraphrase was written."""
        index = {name: r for r, name in enumerate(self._relations)}
        found = kinds_with_paraphrase(written, hops).items()
        return {
            tuple(index[r] for r in names): kinds for names, kinds in found if all(r in index for r in names)
        }
