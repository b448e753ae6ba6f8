"""EmbedKGQA on small graphs: its steps against slow formulas, what it learns, and where it stays silent."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from vispath_lit.errors import ConfigError, DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.models.complex import ComplexSettings, compose, train_complex
from vispath_lit.protocols import System, Trainable
from vispath_lit.systems import embedkgqa
from vispath_lit.systems.embedkgqa import EmbedKGQA, log_partition
from vispath_lit.types import Analysis, Candidate, Query, Question

MakeGraph = Callable[[int, int, Iterable[tuple[int, int, int]]], KnowledgeGraph]
QUICK = ComplexSettings(dim=16, epochs=80, batch=16, negatives=16, lr=0.2)


class WordEncoder:
    """A bag of words over what it has seen: equal texts are equal, other words are orthogonal."""

    dim = 64
    fingerprint = "words"

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def encode(self, texts: Sequence[str]) -> Tensor:
        rows = torch.zeros(len(texts), self.dim)
        for row, text in zip(rows, texts, strict=True):
            for word in text.split():
                row[self.places.setdefault(word, len(self.places)) % self.dim] += 1
        return normalize(rows, dim=1)

    def tokens(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


class Plain:
    """Analyses nothing; starts at the topic, nowhere without one."""

    def analyze(self, queries: Sequence[Query]) -> list[Analysis]:
        return [Analysis("", "", "", (1.0,)) for _ in queries]

    def ground(self, queries: Sequence[Query], analyses: Sequence[Analysis]) -> list[list[Candidate]]:
        return [[Candidate(q.topic, 1.0, "topic")] if q.topic is not None else [] for q in queries]


def system(graph: KnowledgeGraph, **settings: Any) -> EmbedKGQA:
    values: dict[str, Any] = {
        "embedding": QUICK,
        "epochs": 30,
        "patience": 30,
        "batch": 8,
        "lr": 0.02,
        "dropout": 0.0,
    } | settings
    return EmbedKGQA(graph, WordEncoder(), Plain(), Plain(), **values)


@pytest.fixture
def ring(make_graph: MakeGraph) -> KnowledgeGraph:
    return make_graph(12, 2, [(i, r, (i + s) % 12) for i in range(12) for r, s in ((0, 1), (1, 3))])


def asked(count: int = 12) -> list[Question]:
    """Two questions a start: one step around the ring, and three."""
    made = []
    for i in range(count):
        for word, step in (("after", 1), ("third", 3)):
            answer = f"e{(i + step) % 12}"
            made.append(
                Question(f"{word}{i}", f"which is {word}", topic_entity=f"e{i}", answer_ids=(answer,))
            )
    return made


def test_it_learns_which_relation_a_question_is(ring: KnowledgeGraph) -> None:
    questions = asked()
    rival = system(ring)
    assert isinstance(rival, System)
    assert isinstance(rival, Trainable)
    rival.fit(questions, questions, seed=0)
    found = rival.answer([Query(q.text, topic=ring.entity_index(q.topic_entity or "")) for q in questions])
    right = [
        ring.entity_id(p.answer_entity or 0) == q.answer_ids[0] for p, q in zip(found, questions, strict=True)
    ]
    assert sum(right) >= 0.9 * len(right)
    for one, question in zip(found, questions, strict=True):
        start = ring.entity_index(question.topic_entity or "")
        assert len(one.ranked) == len(set(one.ranked)) == 10
        assert start not in one.ranked
        assert (one.answer_entity, one.provenance, one.paths) == (one.ranked[0], "terminal", ())
        assert one.answer == ring.label(one.ranked[0])
        assert 0 < one.confidence <= 1
        assert one.candidates[0].entity == start
        assert one.cost.llm_calls == one.cost.vlm_calls == 0
        assert one.cost.seconds > 0


def test_the_same_seed_gives_the_same_weights(ring: KnowledgeGraph) -> None:
    made = []
    for seed in (1, 1, 2):
        rival = system(ring, epochs=2, dropout=0.2, triples_as_questions=5)
        rival.fit(asked(), asked(2), seed=seed)
        made.append(torch.cat([value.flatten().float() for value in rival.weights.state_dict().values()]))
    assert torch.equal(made[0], made[1])
    assert not torch.equal(made[0], made[2])


def test_entities_stay_or_move_under_a_penalty(ring: KnowledgeGraph) -> None:
    frozen, moved = system(ring, epochs=1), system(ring, epochs=1, penalty=0.1)
    for rival in (frozen, moved):
        rival.fit(asked(), asked(2), seed=0)
    pretrained = train_complex(ring, QUICK, 0)
    assert torch.equal(frozen.weights.entities, pretrained)
    assert not torch.equal(moved.weights.entities, pretrained)


@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.5])
def test_the_loss_is_the_divergence_from_the_smoothed_targets(ring: KnowledgeGraph, smoothing: float) -> None:
    rival = system(ring, smoothing=smoothing)
    torch.manual_seed(0)
    rival.weights.entities.data.normal_()
    vectors = torch.randn(3, WordEncoder.dim)
    starts = torch.tensor([0, 5, 7])
    answers = [torch.tensor([1]), torch.tensor([2, 4, 6]), torch.tensor([11, 0])]
    mine = rival._loss(vectors, starts, answers)
    scores = rival.weights(vectors, starts) @ rival.weights.entities.T
    targets = torch.zeros(3, 12)
    for row, right in zip(targets, answers, strict=True):
        row[right] = 1
    targets = (1 - smoothing) * targets + (1 / 12 if smoothing else 0)
    targets = targets / targets.sum(dim=1, keepdim=True)
    divergence = torch.nn.functional.kl_div(scores.log_softmax(dim=1), targets, reduction="batchmean")
    entropy = -torch.special.entr(targets).sum(dim=1).mean()
    torch.testing.assert_close(mine, divergence - entropy)


def test_the_score_is_complex_between_start_and_question(ring: KnowledgeGraph) -> None:
    weights = system(ring).weights
    weights.entities.data.normal_()
    question = torch.randn(2, WordEncoder.dim)
    found = weights(question, torch.tensor([3, 4]))
    heads = weights.head_norm(weights.entities[[3, 4]])
    expected = weights.score_norm(compose(heads, weights.relation(question)))
    torch.testing.assert_close(found, expected)


def test_blocks_change_nothing(ring: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    rival = system(ring)
    torch.manual_seed(1)
    rival.weights.entities.data.normal_()
    queries = [Query("which is third", topic=i) for i in range(12)]
    whole = rival.answer(queries)
    query = torch.randn(4, 32, requires_grad=True)
    full = log_partition(query, rival.weights.entities)
    (grad,) = torch.autograd.grad(full.sum(), query)
    monkeypatch.setattr(embedkgqa, "BLOCK", 5)
    torch.testing.assert_close(log_partition(query, rival.weights.entities), full)
    torch.testing.assert_close(
        torch.autograd.grad(log_partition(query, rival.weights.entities).sum(), query)[0], grad
    )
    for one, other in zip(whole, rival.answer(queries), strict=True):
        assert one.ranked == other.ranked
        assert one.confidence == pytest.approx(other.confidence, abs=1e-6)


def test_the_lower_entity_wins_a_tie() -> None:
    scores = torch.tensor([[1.0, 3, 3, 2, 3], [0.0, 0, 0, 0, 0], [-torch.inf, 1, 2, 1, 2]])
    assert embedkgqa._best(scores, 3).tolist() == [[1, 2, 4], [0, 1, 2], [2, 4, 1]]
    assert embedkgqa._best(scores, 9).shape == (3, 5)


def test_without_a_start_it_abstains(ring: KnowledgeGraph) -> None:
    found = system(ring, batch_size=2).answer(
        [Query("a"), Query("b", topic=1), Query("", topic=2), Query("d")]
    )
    assert [one.provenance for one in found] == ["abstained", "terminal", "terminal", "abstained"]
    assert system(ring).answer([]) == []


def test_a_graph_without_another_entity_has_no_answer(make_graph: MakeGraph) -> None:
    (found,) = system(make_graph(1, 1, [(0, 0, 0)])).answer([Query("who", topic=0)])
    assert (found.answer, found.provenance) == ("", "abstained")
    assert found.confidence == 0


def test_questions_that_teach_nothing_are_left_out(ring: KnowledgeGraph) -> None:
    odd = [
        Question("no topic", "q", answer_ids=("e1",)),
        Question("no answers", "q", topic_entity="e1"),
        Question("unknown start", "q", topic_entity="x", answer_ids=("e1",)),
        Question("unknown answer", "q", topic_entity="e1", answer_ids=("x",)),
        Question("the start itself", "q", topic_entity="e1", answer_ids=("e1",)),
        Question("no words", "  ", topic_entity="e1", answer_ids=("e2",)),
    ]
    with pytest.raises(DataError, match="of 6 training questions 0 have start and answer"):
        system(ring).fit(odd, odd, seed=0)
    rival = system(ring, epochs=1, batch=2)
    rival.fit([*odd, *asked(1), *asked(1)[:1]], odd, seed=0)  # three left: the last batch has one question
    assert all(value.isfinite().all() for value in rival.weights.state_dict().values())


def test_triples_join_as_questions_with_all_their_tails(make_graph: MakeGraph) -> None:
    graph = make_graph(5, 2, [(0, 0, 1), (0, 0, 2), (0, 0, 0), (3, 1, 3), (4, 1, 0)])
    examples = system(graph)._one_hop(100, seed=0)
    found = {
        (start, text): right.tolist()
        for text, start, right in zip(examples.texts, examples.starts.tolist(), examples.answers, strict=True)
    }
    assert found == {(0, "relation 0"): [1, 2], (4, "relation 1"): [0]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"patience": 0},
        {"batch": 1},
        {"lr": -1.0},
        {"dropout": 1.0},
        {"smoothing": -0.1},
        {"penalty": float("inf")},
        {"triples_as_questions": -1},
        {"batch_size": 0},
    ],
    ids=str,
)
def test_values_that_cannot_work_are_refused(ring: KnowledgeGraph, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"system.{next(iter(wrong))} is"):
        system(ring, **wrong)
