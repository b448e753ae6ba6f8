from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from vispath_lit.data.atlas.questions import drafts
from vispath_lit.data.atlas.questions.drafts import USES, Drafter
from vispath_lit.data.atlas.questions.make import make_questions
from vispath_lit.data.atlas.questions.paraphrases import paraphrases
from vispath_lit.data.atlas.questions.plan import HELD_OUT_RELATIONS, Plan
from vispath_lit.data.bench.select import Caps, Pick
from vispath_lit.data.questions import read_questions
from vispath_lit.kg.frontier import follow
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Question

SMALL = ("val", "test_composition", "test_relation")
PLAN = Plan(
    hops={
        "train": {2: 120, 3: 200, 4: 60},
        "train_wide": {2: 60, 3: 60, 4: 20},
        "val": {2: 10, 3: 20, 4: 5},
        "test": {2: 30, 3: 60, 4: 15},
        "test_composition": {2: 4, 3: 20, 4: 8},
        "test_relation": {2: 6, 3: 10, 4: 4},
    },
    pairs={"train": 24, "train_wide": 8, "val": 8, "test_cue": 12},
    wording={"test": 10, "val": 6},
    caps={
        "train": Caps(kind=0.5, relation=0.3, sequence=0.2),
        "train_wide": Caps(kind=0.5, relation=0.3, sequence=0.2),
        "test": Caps(answer=0.04, kind=0.5, relation=0.3, sequence=0.2),
        **{s: Caps(answer=0.2, kind=0.6, relation=1.0, sequence=0.5) for s in SMALL},
    },
)

Splits = dict[str, list[Question]]


@pytest.fixture(scope="module")
def made(toy_atlas: tuple[KnowledgeGraph, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("questions")
    make_questions(*toy_atlas, out, workers=1, plan=PLAN)
    return out


@pytest.fixture(scope="module")
def splits(made: Path) -> Splits:
    return {path.stem: read_questions(path, check_images=True) for path in sorted(made.glob("*.jsonl"))}


def test_no_evaluation_start_or_cue_country_is_in_training(splits: Splits) -> None:
    starts = {split: {q.topic_entity for q in members} for split, members in splits.items()}
    trained = starts["train"] | starts["train_wide"]
    for split in starts.keys() - {"train", "train_wide"}:
        assert not starts[split] & trained, split
        assert split == "val" or not starts[split] & starts["val"], split
    cued = {
        split: {decided_at(q) for q in splits[split] if "cue" in q.tags}
        for split in ("train", "train_wide", "val", "test_cue")
    }
    assert cued["train"]
    assert cued["test_cue"]
    assert not (cued["train"] | cued["train_wide"]) & cued["test_cue"]
    assert not cued["val"] & (cued["train"] | cued["train_wide"] | cued["test_cue"])


def decided_at(question: Question) -> str:
    """The country A whose neighbour the cue selects."""
    hop = next(int(tag.removeprefix("cue_hop:")) for tag in question.tags if tag.startswith("cue_hop:"))
    before = [question.topic_entity, *(entity for _, entity in question.gold_paths[0])][hop - 1]
    assert before is not None
    return before


def test_the_answer_is_the_only_end_and_no_forward_path_is_shorter(
    splits: Splits, toy_atlas: tuple[KnowledgeGraph, Path]
) -> None:
    graph = toy_atlas[0]
    for question in (q for members in splits.values() for q in members):
        assert question.topic_entity is not None
        assert question.hops == len(question.gold_paths[0])
        start, answer = graph.entity_index(question.topic_entity), graph.entity_index(question.answer_ids[0])
        relations = [graph.relation_index(relation) for relation, _ in question.gold_paths[0]]
        assert follow(graph, start, relations).tolist() == [answer]
        assert distance(graph, start, answer) == question.hops
        entities = [question.topic_entity, *(entity for _, entity in question.gold_paths[0])]
        assert len(set(entities)) == len(entities)


def distance(graph: KnowledgeGraph, start: int, end: int) -> int:
    """Length of the shortest forward path, the slow way."""
    level, seen, steps = {start}, {start}, 0
    while end not in level:
        level = {
            int(t) for e in level for t in graph.out_tail[graph.out_indptr[e] : graph.out_indptr[e + 1]]
        } - seen
        seen |= level
        steps += 1
        assert level
    return steps


def test_held_out_relations_and_sequences_stay_out_of_training(splits: Splits) -> None:
    def sequences(split: str) -> set[tuple[str, ...]]:
        return {tuple(relation for relation, _ in q.gold_paths[0]) for q in splits[split]}

    seen = {relation for sequence in sequences("train") for relation in sequence}
    assert not seen & set(HELD_OUT_RELATIONS)
    assert all(set(sequence) & set(HELD_OUT_RELATIONS) for sequence in sequences("test_relation"))
    assert sequences("test_composition")
    assert not sequences("test_composition") & (sequences("train") | sequences("train_wide"))
    for split in ("val", "test", "test_composition"):
        assert {relation for sequence in sequences(split) for relation in sequence} <= seen


def test_cue_questions_come_in_pairs_of_equal_words_and_different_answers(splits: Splits) -> None:
    pairs: dict[object, list[Question]] = defaultdict(list)
    for question in splits["test_cue"]:
        pairs[question.meta["pair"]].append(question)
    assert pairs
    for first, second in pairs.values():
        assert (first.text, first.topic_entity) == (second.text, second.topic_entity)
        assert first.answer_ids != second.answer_ids
        assert first.image is not None
        assert second.image is not None
        assert first.image.read_bytes() != second.image.read_bytes()
    modes = Counter(tag for q in splits["test_cue"] for tag in q.tags if tag.startswith("cue:"))
    assert min(modes.values()) >= 0.4 * len(splits["test_cue"])


def test_paths_that_someone_wrote_for_are_in_these_words(splits: Splits) -> None:
    written = paraphrases("train")
    used: Counter[str] = Counter()
    for question in splits["train_wide"]:
        kind = next(tag.removeprefix("image:") for tag in question.tags if tag.startswith("image:"))
        texts = written.get((kind, tuple(relation for relation, _ in question.gold_paths[0])), ())
        used.update(text for text in texts if text == question.text)
    assert sum(used.values()) >= 0.62 * sum(PLAN.hops["train_wide"].values()), (
        "0.56 where none are looked for"
    )
    assert max(used.values()) <= USES
    free = {text for texts in written.values() for text in texts}
    assert not any(q.text in free for split in splits.keys() - {"train_wide"} for q in splits[split])


def test_free_words_are_used_a_few_times_and_not_where_they_tell_the_answer(
    toy_atlas: tuple[KnowledgeGraph, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = toy_atlas[0]
    capital = graph.relation_index("capital")
    country = next(e for e in range(graph.num_entities) if follow(graph, e, [capital]).size == 1)
    city = int(follow(graph, country, [capital])[0])
    name = graph.label(city)
    pick = Pick((country, city), (capital,), "flag")

    def texts(free: str) -> list[str]:
        monkeypatch.setattr(drafts, "paraphrases", lambda split: {("flag", ("capital",)): (free,)})
        return [draft.text for draft in Drafter(graph, 0).worded([pick] * 5, "train_wide")]

    free = "Where does this flag have its seat?"
    assert [text == free for text in texts(free)] == [True] * USES + [False] * (5 - USES)
    assert f"Is it {name}?" not in texts(f"Is it {name}?")


def test_no_answer_is_too_common(splits: Splits) -> None:
    answers = Counter(q.answer_ids for q in splits["test"])
    assert max(answers.values()) <= 0.04 * len(splits["test"])


def test_names_and_ids_tell_nothing(splits: Splits) -> None:
    for question in (q for members in splits.values() for q in members):
        assert question.image is not None
        assert len(question.image.stem) == 16
        assert set(question.image.stem) <= set("0123456789abcdef")
        assert not any(answer.lower() in question.id for answer in question.answer_ids)
        assert not any(answer in question.text for answer in question.answers)


def test_test_questions_share_no_picture(splits: Splits) -> None:
    images = Counter(
        q.image
        for split, members in splits.items()
        if split not in ("train", "train_wide", "test_wording", "val_wording")
        for q in members
    )
    assert set(images.values()) == {1}


def test_the_same_graph_gives_the_same_bytes(
    made: Path, toy_atlas: tuple[KnowledgeGraph, Path], tmp_path: Path
) -> None:
    make_questions(*toy_atlas, tmp_path, workers=2, plan=PLAN)
    files = sorted(p.relative_to(made) for p in made.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert all((made / f).read_bytes() == (tmp_path / f).read_bytes() for f in files)


def test_a_split_is_shuffled(splits: Splits) -> None:
    hops = np.array([q.hops for q in splits["test"]])
    assert np.abs(np.diff(hops)).sum() > 10
