"""Questions from drafts: their order, their ids, their tags and their pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vispath_lit.data.atlas.questions.drafts import Draft
from vispath_lit.data.atlas.questions.pictures import Arrow, Strip, Task
from vispath_lit.data.atlas.questions.plan import SPLITS, TRAINING, Plan
from vispath_lit.data.atlas.questions.starts import Starts
from vispath_lit.data.bench.walks import Walks, nearer_through_inverse
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question


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
        if split not in TRAINING or draft.cue is not None:
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


def assemble(
    graph: KnowledgeGraph, drafts: Mapping[str, Sequence[Draft]], gallery: Gallery, seed: int
) -> dict[str, list[Question]]:
    """Shuffles every split once, and gives out ids and pictures.

    Args:
        drafts: by split.
        gallery: notes the pictures to draw.
    """
    questions: dict[str, list[Question]] = {}
    for split, members in drafts.items():
        rng = np.random.default_rng([seed, 300 + SPLITS.index(split)])
        order = [members[i] for i in rng.permutation(len(members)).tolist()]
        nearer = _nearer(graph, order)
        questions[split] = [
            _question(graph, split, serial, draft, gallery.picture(draft, split), nearer[serial])
            for serial, draft in enumerate(order)
        ]
    return questions


def _nearer(graph: KnowledgeGraph, drafts: Sequence[Draft]) -> list[bool]:
    """For each draft whether inverse edges give a shorter way to its answer."""
    nearer = [False] * len(drafts)
    for hops in sorted({len(d.pick.relations) for d in drafts}):
        rows = [i for i, d in enumerate(drafts) if len(d.pick.relations) == hops]
        if rows:
            entities = np.array([drafts[i].pick.entities for i in rows])
            relations = np.array([drafts[i].pick.relations for i in rows])
            flags = nearer_through_inverse(graph, Walks(entities, relations))
            for row, flag in zip(rows, flags.tolist(), strict=True):
                nearer[row] = flag
    return nearer


def _question(
    graph: KnowledgeGraph, split: str, serial: int, draft: Draft, image: Path, nearer: bool
) -> Question:
    pick = draft.pick
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
        gold_paths=(tuple((graph.relation_id(r), graph.entity_id(e)) for r, e in steps),),
        hops=len(pick.relations),
        split=split,
        tags=tuple(tags),
        meta={} if draft.pair is None else {"pair": f"{split}-{draft.pair:04d}"},
    )
