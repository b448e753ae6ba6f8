"""Makes the questions of Atlas: gold paths, splits, words and pictures, in this order."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vispath_lit.data.atlas.questions.cues import CuePick, Pair, PairCaps, choose_pairs, cue_pairs, read_cues
from vispath_lit.data.atlas.questions.paraphrases import kinds_with_paraphrase, paraphrased
from vispath_lit.data.atlas.questions.pictures import Arrow, Strip, Task, draw
from vispath_lit.data.atlas.questions.plan import SPLITS, HoldOut, Plan
from vispath_lit.data.atlas.questions.select import Caps, Pick, Picker, Wanted
from vispath_lit.data.atlas.questions.starts import Starts, find_starts
from vispath_lit.data.atlas.questions.statistics import split_statistics, yields
from vispath_lit.data.atlas.questions.views import ViewRanges
from vispath_lit.data.atlas.questions.walks import (
    Ints,
    Walks,
    functional_steps,
    nearer_through_inverse,
    shortest_walks,
)
from vispath_lit.data.atlas.questions.wording import Writer, phrases
from vispath_lit.data.atlas.relations import relations_by_id
from vispath_lit.data.questions import write_questions
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

log = logging.getLogger(__name__)

DEPTH = 4
POOL_OF = {"train": "train", "val": "val"}
"""The pool of each split's starts; every test split takes the test pool."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that has its words, and not yet its picture."""

    pick: Pick
    text: str
    new_form: bool
    tags: tuple[str, ...] = ()
    cue: Arrow | Strip | None = None
    pair: int | None = None


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
    maker = Maker(graph, cues, plan)
    drafts = maker.drafts()
    (out / "images").mkdir(parents=True, exist_ok=True)
    tasks, questions = maker.finish(drafts, out)
    draw(tasks, maker.ranges, workers)
    for split, members in questions.items():
        if members:
            write_questions(out / f"{split}.jsonl", members)
    return {
        "splits": {s: split_statistics(members) for s, members in questions.items()},
        "yields": maker.yields,
        "pictures": len(tasks),
        "view_ranges": maker.ranges.as_dict(),
        "plan": plan.as_dict(),
        "fingerprint": fingerprint(out),
    }


def fingerprint(folder: Path) -> str:
    """A hash of every file of the question folder, names and bytes."""
    total = hashlib.blake2b(digest_size=16)
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        total.update(path.relative_to(folder).as_posix().encode())
        total.update(hashlib.blake2b(path.read_bytes(), digest_size=16).digest())
    return total.hexdigest()


class Maker:
    """Holds what the steps share: graph, starts, gold paths and seeds."""

    def __init__(self, graph: KnowledgeGraph, cues: Path, plan: Plan) -> None:
        self.graph, self.plan, self.ranges = graph, plan, ViewRanges()
        self.relations = [graph.relation_id(r) for r in range(graph.num_relations)]
        self.starts = find_starts(graph, phrases().show.keys(), plan.seed)
        self.cues = read_cues(cues, graph, plan.seed)
        self.held = HoldOut.of(graph, plan.seed)
        self.yields: dict[str, object] = {}
        self._border_like = [r for r, name in enumerate(self.relations) if "border" in name]
        self._types = np.array(graph.column("type").to_pylist(), dtype=object)

    def drafts(self) -> dict[str, list[Draft]]:
        """The worded questions of every split, not yet in their final order."""
        found: dict[str, list[Draft]] = {}
        for pool in ("train", "val", "test"):
            walks = self.walks(self.starts.of(pool))
            self.yields[pool] = found_yields = yields(walks)
            for hops, counts in found_yields.items():
                log.info("%s starts, %s hops: %s", pool, hops, counts)
            for split in self.plan.hops:
                if POOL_OF.get(split, "test") == pool:
                    picks = self.picks(split, walks)
                    found[split] = self.worded(picks, split)
                    if split == "test":
                        found["test_wording"] = self.paraphrased(picks)
            cue_split = "test_cue" if pool == "test" else pool
            found.setdefault(cue_split, []).extend(self.cue_drafts(cue_split, walks))
        return {split: found[split] for split in SPLITS if split in found}

    def walks(self, starts: Ints) -> list[Walks]:
        """All gold paths from the starts by length, ending where a question may end."""
        known, words = relations_by_id(), phrases()
        middle = np.array([r in words.of or r in words.ask for r in self.relations])
        last = np.array([r in words.ask and known[r].askable for r in self.relations])
        between = np.array([r in words.of for r in self.relations])
        found = []
        for walks in shortest_walks(self.graph, functional_steps(self.graph, middle), starts, DEPTH):
            fits = last[walks.relations[:, -1]] & between[walks.relations[:, :-1]].all(axis=1)
            found.append(walks.select(fits & self._readable(walks)))
        return found

    def _readable(self, walks: Walks) -> NDArray[np.bool_]:
        """`[W]`: walks that do not go in circles of words.

        No relation comes twice, at most two steps go over a border, and from a county at most one.
        """
        relations = np.sort(walks.relations, axis=1)
        distinct = (np.diff(relations, axis=1) != 0).all(axis=1)
        border = np.isin(walks.relations, self._border_like).sum(axis=1)
        county = self._types[walks.entities[:, 0]] == "county"
        return np.asarray(distinct & (border <= np.where(county, 1, 2)))

    def picks(self, split: str, walks: Sequence[Walks]) -> list[Pick]:
        """The gold paths of one split."""
        rng = np.random.default_rng([self.plan.seed, SPLITS.index(split)])
        caps = self.plan.caps.get(split, Caps())
        picker = Picker(self.plan.size(split), self.starts.kinds(), caps, rng)
        for hops, count in sorted(self.plan.hops[split].items(), reverse=True):
            part = walks[hops - 1]
            relation, sequence = self.held.new_relation(part), self.held.new_sequence(part)
            if split == "test_relation":
                part = part.select(relation)
            elif split == "test_composition":
                part = part.select(sequence & ~relation)
            else:
                part = part.select(~sequence & ~relation)
            asked = picker.take(part, count // 6, self._paraphrased(hops)) if split == "test" else 0
            picker.take(part, count - asked)
        return picker.picks

    def _paraphrased(self, hops: int) -> Wanted:
        """Relation sequences with the kinds of picture for which a free paraphrase was written."""
        index = {name: r for r, name in enumerate(self.relations)}
        found = kinds_with_paraphrase(hops).items()
        return {
            tuple(index[r] for r in names): kinds for names, kinds in found if all(r in index for r in names)
        }

    def worded(self, picks: Sequence[Pick], split: str) -> list[Draft]:
        """The picks in words."""
        rng = np.random.default_rng([self.plan.seed, 100 + SPLITS.index(split)])
        writer = Writer(rng, held_out=split.startswith("test"))
        drafts = []
        for pick in picks:
            words = writer.question(pick.kind, *self._names(pick))
            drafts.append(Draft(pick, words.text, words.new_form))
        return drafts

    def paraphrased(self, picks: Sequence[Pick]) -> list[Draft]:
        """Test questions in words written by hand for them."""
        rng = np.random.default_rng([self.plan.seed, 500])
        chosen = paraphrased(picks, self.relations, self.plan.wording, rng)
        return [Draft(pick, text, True) for pick, text in chosen]

    def cue_drafts(self, split: str, walks: Sequence[Walks]) -> list[Draft]:
        """Pairs of questions in the same words whose cues differ."""
        rng = np.random.default_rng([self.plan.seed, 200 + SPLITS.index(split)])
        usable = [w.select(~self.held.new_relation(w)) for w in walks]
        usable = [w.select(~self.held.new_sequence(w)) for w in usable]
        groups = cue_pairs(self.graph, usable, self.starts, self.cues[POOL_OF.get(split, "test")])
        pool = {f"{mode}_{hop}": len(found) for (mode, hop), found in groups.items()}
        self.yields[f"{split}_cue_groups"] = pool
        count = self.plan.pairs[split]
        cap = max(2, int(0.02 * 2 * count))
        pairs = choose_pairs(groups, PairCaps(count, cap, max(4, count // 20), max(8, count // 12)), rng)
        writer = Writer(rng, held_out=split.startswith("test"))
        return [draft for serial, pair in enumerate(pairs) for draft in self._pair(pair, serial, writer)]

    def _pair(self, pair: Pair, serial: int, writer: Writer) -> list[Draft]:
        first: CuePick = pair[0]
        relations, types = self._names(first.pick)
        relations[first.hop - 1] = f"cue_{first.mode}"
        words = writer.question(first.pick.kind, relations, types)
        tags = ("cue", f"cue:{first.mode}", f"cue_hop:{first.hop}")
        return [Draft(p.pick, words.text, words.new_form, tags, p.cue, serial) for p in pair]

    def _names(self, pick: Pick) -> tuple[list[str], list[str]]:
        relations = [self.relations[r] for r in pick.relations]
        return relations, [str(self._types[e]) for e in pick.entities]

    def finish(
        self, drafts: Mapping[str, list[Draft]], out: Path
    ) -> tuple[list[Task], dict[str, list[Question]]]:
        """Shuffles every split, gives out ids and pictures."""
        gallery = Gallery(self.starts, out / "images", self.plan)
        questions: dict[str, list[Question]] = {}
        for split, members in drafts.items():
            rng = np.random.default_rng([self.plan.seed, 300 + SPLITS.index(split)])
            order = [members[i] for i in rng.permutation(len(members)).tolist()]
            nearer = self._nearer(order)
            questions[split] = [
                self._question(split, serial, draft, gallery.picture(draft, split), nearer[serial])
                for serial, draft in enumerate(order)
            ]
        return gallery.tasks, questions

    def _nearer(self, drafts: Sequence[Draft]) -> list[bool]:
        """For each draft whether inverse edges give a shorter way to its answer."""
        nearer = [False] * len(drafts)
        for hops in range(2, DEPTH + 1):
            rows = [i for i, d in enumerate(drafts) if len(d.pick.relations) == hops]
            if rows:
                entities = np.array([drafts[i].pick.entities for i in rows])
                relations = np.array([drafts[i].pick.relations for i in rows])
                flags = nearer_through_inverse(self.graph, Walks(entities, relations))
                for row, flag in zip(rows, flags.tolist(), strict=True):
                    nearer[row] = flag
        return nearer

    def _question(self, split: str, serial: int, draft: Draft, image: Path, nearer: bool) -> Question:
        graph, pick = self.graph, draft.pick
        answer = pick.entities[-1]
        steps = zip(pick.relations, pick.entities[1:], strict=True)
        tags = [f"image:{draft.pick.kind}", *draft.tags]
        tags += ["nearer_by_inverse"] * nearer + ["new_form"] * draft.new_form
        return Question(
            id=f"atlas-{split}-{serial:05d}",
            text=draft.text,
            image=image,
            answers=tuple(dict.fromkeys([graph.label(answer), *graph.aliases(answer)])),
            answer_ids=(graph.entity_id(answer),),
            topic_entity=graph.entity_id(pick.entities[0]),
            gold_paths=(tuple((self.relations[r], graph.entity_id(e)) for r, e in steps),),
            hops=len(pick.relations),
            split=split,
            tags=tuple(tags),
            meta={} if draft.pair is None else {"pair": f"{split}-{draft.pair:04d}"},
        )


class Gallery:
    """Gives every question a picture under a name that tells nothing.

    Training questions about the same start and kind of picture share a few views; every other question
    has its own.
    """

    def __init__(self, starts: Starts, folder: Path, plan: Plan) -> None:
        self.tasks: list[Task] = []
        self._starts, self._folder, self._plan = starts, folder, plan
        self._names = np.random.default_rng([plan.seed, 400])
        self._shared: dict[tuple[int, str, int], Path] = {}
        self._uses: dict[tuple[int, str], int] = defaultdict(int)

    def picture(self, draft: Draft, split: str) -> Path:
        """The path of the question's picture, which `tasks` will draw."""
        start, kind = draft.pick.entities[0], draft.pick.kind
        if split != "train" or draft.cue is not None:
            return self._new(start, kind, draft.cue)
        use = self._uses[start, kind]
        self._uses[start, kind] += 1
        key = (start, kind, use % self._plan.train_views)
        if key not in self._shared:
            self._shared[key] = self._new(start, kind, None)
        return self._shared[key]

    def _new(self, start: int, kind: str, cue: Arrow | Strip | None) -> Path:
        files = self._starts.files[start][kind]
        path = self._folder / f"{self._names.bytes(8).hex()}.jpg"
        seed = int(self._names.integers(2**62))
        self.tasks.append(Task(files[seed % len(files)], str(path), seed, cue))
        return path
