"""VisPath-Bench on any graph with pictures: sampling, words, single answers, splits (paper, section V-A)."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vispath_lit.data.bench.gold import BenchPlan, allowed_relations, choose, gold_walks
from vispath_lit.data.bench.leaks import tells
from vispath_lit.data.bench.phrases import Phrases, Wording
from vispath_lit.data.bench.pictures import Shown, picturable, shown_pictures
from vispath_lit.data.bench.rewrite import Asked, Rewrite, acceptable
from vispath_lit.data.bench.select import Pick
from vispath_lit.data.bench.statistics import statistics
from vispath_lit.data.bench.walks import Ints, Walks, functional_steps, nearer_through_inverse
from vispath_lit.data.made_folder import STATISTICS, moved_in, refuse_foreign, write_statistics
from vispath_lit.data.questions import write_questions
from vispath_lit.data.sources.custom import divide
from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.kg.withhold import without_images
from vispath_lit.types import Question

PARTS = ("store", "questions", "question_lengths.svg", STATISTICS)
"""What a benchmark's folder holds."""

TRIES = 10
"""Wordings that are tried until one names neither start nor answer."""


@dataclass(frozen=True, slots=True)
class _Draft:
    pick: Pick
    text: str
    rewritten: bool
    nearer: bool


def make_bench(
    graph: KnowledgeGraph,
    out: Path,
    plan: BenchPlan | None = None,
    phrases: Phrases | None = None,
    rewrite: Rewrite | None = None,
) -> dict[str, Any]:
    """Writes `store/` and `questions/` into `out` and returns their statistics.

    The same graph, plan and phrases give the same bytes. The parts are made beside `out` and moved in when
    all are whole.

    Args:
        rewrite: says the templates' questions in other words; None leaves them.

    Raises:
        DataError: no question can be made of this graph, or `out` holds something else.
    """
    plan, phrases, out = plan or BenchPlan(), phrases or Phrases(), out.absolute()
    if graph.path == out or graph.path.is_relative_to(out):
        raise DataError(f"{out}: the graph {graph.path} lies in it; name another folder")
    refuse_foreign(out, PARTS, "a benchmark")
    starts, walks = _walks(graph, plan, phrases)
    met = np.unique(np.concatenate([part.entities[:, 0] for part in walks.values()]))
    shown = shown_pictures(graph, met.tolist())
    chosen = choose(walks, plan, {start: (picture.kind,) for start, picture in shown.items()})
    drafts, told = _drafts(graph, chosen, plan, phrases)
    if not drafts:
        raise DataError(f"{graph.path}: every question would name its start or answer; give other phrases")
    drafts, refused = _rewritten(graph, drafts, rewrite)
    found: dict[str, Any] = {
        "graph": {"fingerprint": graph.fingerprint, "entities": graph.num_entities},
        "plan": plan.as_dict(),
        "starts": len(starts),
        "gold_paths": {str(hops): len(part) for hops, part in sorted(walks.items())},
        "wanted": {str(hops): count for hops, count in sorted(plan.counts().items())},
        "left_out": {"named_start_or_answer": told},
        "rewritten": sum(draft.rewritten for draft in drafts),
        "rewriting_refused": refused,
    }
    try:
        with moved_in(out, PARTS) as made:
            questions = _written(graph, made, drafts, shown, plan.seed)
            found["splits"] = {split: statistics(members) for split, members in questions.items()}
            found["all"] = statistics([q for members in questions.values() for q in members])
            write_statistics(made, found)
    except OSError as error:
        raise DataError(f"{out}: the benchmark could not be written: {error}") from error
    return found


def _walks(graph: KnowledgeGraph, plan: BenchPlan, phrases: Phrases) -> tuple[Ints, dict[int, Walks]]:
    """The sampled starts, and the gold paths that leave them."""
    pictured = picturable(graph)
    starts = pictured[graph.out_degrees()[pictured] > 0]
    if not len(starts):
        raise DataError(
            f"{graph.path}: of {graph.num_entities} entities {len(np.unique(graph.image_entity))} have a "
            f"picture, {len(pictured)} one of their own, and none of these has an outgoing edge; a benchmark "
            "starts at pictures: list some in images.tsv and build the graph again"
        )
    order = np.random.default_rng([plan.seed, 0]).permutation(len(starts))
    starts = np.sort(starts[order[: plan.starts]])
    steps = functional_steps(graph, allowed_relations(graph, phrases.skip))
    walks = gold_walks(graph, steps, starts, plan)
    if not any(len(part) for part in walks.values()):
        raise DataError(
            f"{graph.path}: from {len(starts)} entities with a picture no path of {sorted(plan.hops)} hops "
            f"leads to one answer alone ({len(steps.tail)} of {graph.num_triples} edges are the only one of "
            "their relation at their subject); ask for fewer hops or allow repeated relations"
        )
    return starts, walks


def _drafts(
    graph: KnowledgeGraph, chosen: Mapping[int, Sequence[Pick]], plan: BenchPlan, phrases: Phrases
) -> tuple[list[_Draft], int]:
    """The picks in words, and how many could not be said without naming start or answer."""
    wording = Wording(graph, phrases, np.random.default_rng([plan.seed, 3]))
    drafts, told = [], 0
    for hops, picks in sorted(chosen.items()):
        if not picks:
            continue
        entities = np.array([pick.entities for pick in picks])
        relations = np.array([pick.relations for pick in picks]).reshape(len(picks), hops)
        nearer = nearer_through_inverse(graph, Walks(entities, relations)).tolist()
        for pick, by_inverse in zip(picks, nearer, strict=True):
            types = graph.types(pick.entities)
            for _ in range(TRIES):
                text = wording.question(pick.relations, types)
                if not any(tells(graph, text, pick.entities[i]) for i in (0, -1)):
                    drafts.append(_Draft(pick, text, False, by_inverse))
                    break
            else:
                told += 1
    return drafts, told


def _rewritten(
    graph: KnowledgeGraph, drafts: list[_Draft], rewrite: Rewrite | None
) -> tuple[list[_Draft], int]:
    """The drafts in new words where these keep the rule, and how many did not."""
    if rewrite is None:
        return drafts, 0
    texts = rewrite([Asked(draft.text, draft.pick.entities, draft.pick.relations) for draft in drafts])
    good = [acceptable(graph, text, draft.pick.entities) for text, draft in zip(texts, drafts, strict=True)]
    new = [
        replace(draft, text=str(text).strip(), rewritten=True) if fits else draft
        for draft, text, fits in zip(drafts, texts, good, strict=True)
    ]
    return new, len(drafts) - sum(good)


def _written(
    graph: KnowledgeGraph, made: Path, drafts: Sequence[_Draft], shown: Mapping[int, Shown], seed: int
) -> dict[str, list[Question]]:
    """The questions of every split in one seeded shuffle, their pictures, and the graph without those."""
    images = made / "questions" / "images"
    images.mkdir(parents=True)
    rng = np.random.default_rng([seed, 4])
    pictures: dict[int, Path] = {}
    for start in sorted({draft.pick.entities[0] for draft in drafts}):
        source = Path(shown[start].file)
        # The name in the graph is a hash of the bytes; this one tells nothing.
        pictures[start] = images / f"{rng.bytes(8).hex()}{source.suffix}"
        shutil.copyfile(source, pictures[start])
    order = rng.permutation(len(drafts)).tolist()
    questions = [_question(graph, serial, drafts[i], pictures, shown) for serial, i in enumerate(order)]
    found = {}
    for split, members in divide(questions, seed).items():
        place = sorted(members, key=lambda question: question.id)
        found[split] = [
            replace(question, id=f"bench-{split}-{serial:05d}", split=split)
            for serial, question in enumerate(place)
        ]
        if found[split]:
            write_questions(made / "questions" / f"{split}.jsonl", found[split])
    rows = [row for start in pictures for row in shown[start].rows if shown[start].withheld]
    without_images(graph, np.array(sorted(rows), dtype=np.int64), made / "store")
    return found


def _question(
    graph: KnowledgeGraph,
    serial: int,
    draft: _Draft,
    pictures: Mapping[int, Path],
    shown: Mapping[int, Shown],
) -> Question:
    start, answer = draft.pick.entities[0], draft.pick.entities[-1]
    steps = zip(draft.pick.relations, draft.pick.entities[1:], strict=True)
    tags = [f"image:{shown[start].kind or 'picture'}"]
    tags += ["reference_picture"] * (not shown[start].withheld) + ["nearer_by_inverse"] * draft.nearer
    return Question(
        id=f"{serial:08d}",
        text=draft.text,
        image=pictures[start],
        answers=tuple(dict.fromkeys([graph.label(answer), *graph.aliases(answer)])),
        answer_ids=(graph.entity_id(answer),),
        topic_entity=graph.entity_id(start),
        gold_paths=(tuple((graph.relation_id(r), graph.entity_id(e)) for r, e in steps),),
        hops=len(draft.pick.relations),
        tags=tuple(tags),
    )
