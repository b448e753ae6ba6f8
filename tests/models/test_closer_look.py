from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from learned_worlds import EvenAnalyzer, ring_triples
from pictured_worlds import cued, learner

from vispath_lit.data.datamodule import QuestionDataModule
from vispath_lit.data.states import StateSettings
from vispath_lit.data.supervision import supervise
from vispath_lit.errors import ConfigError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.closer_look import CloserLook, decided_by_pictures, drawn, look_closer
from vispath_lit.models.module import VisPathModule
from vispath_lit.types import Question

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]


def data(graph: KnowledgeGraph, folder: Path) -> QuestionDataModule:
    return QuestionDataModule(
        graph,
        supervise(graph, cued(folder, 160, seed=0)),
        supervise(graph, cued(folder, 80, seed=1)),
        EvenAnalyzer().analyze,
        StateSettings(edges=10),
        images=True,
    )


@torch.no_grad()
def edge_hits(module: VisPathModule, questions: QuestionDataModule) -> float:
    module.parts.eval()
    hits, of = module.walk.run(questions.builders["val"].batch(range(1, 80, 2), [0]), 0.0).counts[
        "edge_hit/1"
    ]
    return hits / of


def test_the_picture_is_learned_and_nothing_else_moves(make_graph: MakeGraph, tmp_path: Path) -> None:
    graph = make_graph(40, 6, ring_triples())
    questions = data(graph, tmp_path)
    found: list[dict[str, torch.Tensor]] = []
    for _ in range(2):
        module = learner(graph, 2)
        module.parts.depth.requires_grad_(False)  # type: ignore[union-attr]
        before = {name: weight.clone() for name, weight in module.parts.state_dict().items()}
        trained = {name for name, weight in module.parts.named_parameters() if weight.requires_grad}
        low = edge_hits(module, questions)
        torch.rand(len(found))  # what was drawn before makes no difference
        look_closer(
            module.walk,
            module.parts.intent,  # type: ignore[arg-type]
            questions.builders["train"].batch,
            range(1, 160, 2),
            160,
            CloserLook(passes=24, batch=16, lr=4e-3),
            seed=3,
        )
        assert edge_hits(module, questions) > max(0.8, low)
        after = module.parts.state_dict()
        moved = {name for name in after if not torch.equal(after[name], before[name])}
        assert moved
        assert all(name.startswith("intent.picture.") for name in moved)
        assert {name for name, weight in module.parts.named_parameters() if weight.requires_grad} == trained
        found.append(after)
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


def test_questions_that_pictures_tell_apart_have_words_and_start_in_common() -> None:
    def question(text: str, start: str, end: str, image: str | None = "a.png") -> Question:
        path = ((("r0", end),),)
        shown = None if image is None else Path(image)
        name = f"{text}{start}{end}{image}"
        return Question(id=name, text=text, image=shown, topic_entity=start, gold_paths=path)

    questions = [
        question("shown", "e0", "e1"),
        question("shown", "e1", "e2", "b.png"),  # another start
        question("named", "e0", "e2", "b.png"),  # other words
        question("shown", "e0", "e2", "b.png"),  # the first one's twin
        question("lone", "e0", "e1"),
        question("lone", "e0", "e1", "b.png"),  # the same path
        question("ours", "e0", "e1"),
        question("ours", "e0", "e2"),  # the same picture
        question("blind", "e0", "e1", None),
        question("blind", "e0", "e2", None),
        Question(id="no gold", text="shown", image=Path("b.png"), topic_entity="e0"),
    ]
    assert decided_by_pictures(questions) == [0, 3]


def test_each_pass_has_every_row_once_and_others_beside_them() -> None:
    rows, settings = [1, 4, 5, 8, 9], CloserLook(passes=2, batch=2, others=3)
    batches = drawn(rows, 12, settings, np.random.default_rng(0))
    assert [number for number, _ in batches] == [0, 0, 0, 1, 1, 1]
    for number in (0, 1):
        mine = [row for of, batch in batches if of == number for row in batch if row in rows]
        assert sorted(mine) == rows
    for _, batch in batches:
        beside = [row for row in batch if row not in rows]
        assert len(beside) == len(set(beside)) == 3
        assert len(set(batch)) == len(batch) <= 5
    nobody = drawn([0, 1], 2, settings, np.random.default_rng(0))  # else there are none
    assert [set(batch) for _, batch in nobody] == [{0, 1}, {0, 1}]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"passes": -1}, "passes is -1"),
        ({"batch": 0}, "batch is 0"),
        ({"others": -1}, "others is -1"),
        ({"lr": 0.0}, "lr is 0.0"),
        ({"weight_decay": float("nan")}, "weight_decay nan"),
        ({"beam_share": 1.5}, "beam_share is 1.5"),
    ],
)
def test_settings_that_cannot_be_are_refused(values: dict[str, float], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CloserLook(**values)  # type: ignore[arg-type]
