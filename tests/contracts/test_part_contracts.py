"""Every config of every group is built and keeps its seam; a new config is tested as soon as it is there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from tiny_vlms import FAMILIES
from torch import Tensor, nn

from vispath_lit.data.queries import to_query
from vispath_lit.kg.frontier import expand
from vispath_lit.launch.config import conf_dir, load_config
from vispath_lit.launch.parts import World, make_parts, make_system, make_world
from vispath_lit.protocols import Backbone, System
from vispath_lit.types import Analysis, Cost, Intents, Paths, Query, Question, Rows, States

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]


def choices(group: str) -> list[str]:
    found = sorted(file.stem for file in (conf_dir() / group).glob("*.yaml"))
    assert found, f"no config in {group}"
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    cache = tmp_path_factory.mktemp("cache")
    return make_world(load_config("train", [*DATA, "chat=scripted", f"cache_dir={cache}"]))


@pytest.fixture(scope="module")
def queries(world: World) -> list[Query]:
    assert world.source is not None
    return [to_query(q, world.graph, grant_start=True) for q in world.source.questions("train")[:4]]


def build(world: World, *choice: str) -> dict[str, Any]:
    """The fixed system with one part exchanged; a learned part is untrained."""
    parts = make_parts(load_config("eval", ["parts/texts=exact", *choice]).parts, world)
    for part in parts.values():
        if isinstance(part, nn.Module):
            part.eval()
    return parts


def states_of(world: World, parts: dict[str, Any], queries: list[Query]) -> States:
    """Two partial paths of one hop a question, unless its start has but one edge."""
    starts = torch.tensor([query.topic for query in queries])
    frontier = expand(world.graph, Paths.starts(starts, torch.arange(len(queries))))
    first = torch.searchsorted(frontier.edge_path, torch.arange(len(queries)))
    rows = torch.tensor(
        sorted({row for low in first.tolist() for row in (low, min(low + 1, len(frontier) - 1))})
    )
    paths = frontier.paths.extend(frontier.edge_path, frontier.relation, frontier.tail).select(rows)
    return States(queries, parts["analyzer"].analyze(queries), paths)


def is_logits(values: Tensor, count: int) -> None:
    assert values.shape == (count,)
    assert values.isfinite().all()


@pytest.mark.parametrize("choice", choices("parts/analyzer"))
def test_an_analyzer_reads_each_question_by_itself(choice: str, world: World, queries: list[Query]) -> None:
    analyzer = build(world, f"parts/analyzer={choice}")["analyzer"]
    found: list[Analysis] = analyzer.analyze(queries)
    assert [type(one) for one in found] == [Analysis] * len(queries)
    for one in found:
        assert sum(one.depth) == pytest.approx(1, abs=1e-5)
        assert 1 <= one.hops <= len(one.depth)
    for one, other in zip(found[::-1], analyzer.analyze(queries[::-1]), strict=True):
        assert (one.expression, one.head, one.sketch) == (other.expression, other.head, other.sketch)
        assert one.depth == pytest.approx(other.depth, abs=1e-5)
    assert analyzer.analyze([]) == []


@pytest.mark.parametrize("choice", choices("parts/grounder"))
def test_a_grounder_ranks_and_lets_a_topic_come_alone(
    choice: str, world: World, queries: list[Query]
) -> None:
    parts = build(world, f"parts/grounder={choice}")
    free = [Query(query.text, query.image) for query in queries]
    asked = [*free, *queries]
    found = parts["grounder"].ground(asked, parts["analyzer"].analyze(asked))
    assert len(found) == len(asked)
    for candidates in found[: len(free)]:
        assert len({one.entity for one in candidates}) == len(candidates)
        assert all(0 <= one.entity < world.graph.num_entities for one in candidates)
        assert [one.score for one in candidates] == sorted((one.score for one in candidates), reverse=True)
    for query, candidates in zip(queries, found[len(free) :], strict=True):
        assert [(one.entity, one.origin) for one in candidates] == [(query.topic, "topic")]


@pytest.mark.parametrize("choice", choices("parts/texts"))
def test_text_stages_give_unit_rows_and_the_last_one_decides(
    choice: str, world: World, queries: list[Query]
) -> None:
    parts = build(world, f"parts/texts={choice}")
    frontier = expand(world.graph, states_of(world, parts, queries).paths)
    chains = frontier.paths.extend(frontier.edge_path, frontier.relation, frontier.tail)
    stages = parts["texts"].stages
    assert [stage.keep is None for stage in stages] == [False] * (len(stages) - 1) + [True]
    for stage in stages:
        for rows, count in (
            (stage.edge_vectors(frontier.relation, frontier.tail), len(frontier)),
            (stage.chain_vectors(chains), len(chains)),
        ):
            assert rows.index.shape == (count,)
            assert rows.vectors.shape[1] == world.text_encoder.dim
            assert rows.dense().norm(dim=1).sub(1).abs().max() < 1e-2
        pairs = list(zip(frontier.relation.tolist(), frontier.tail.tolist(), strict=True))
        index = stage.edge_vectors(frontier.relation, frontier.tail).index.tolist()
        assert len(set(zip(pairs, index, strict=True))) == len(set(pairs)) < len(pairs)


# Choices that name a model of the hub meet the contract with a tiny one of the same family.
TINY = {
    "hf": "idefics3",
    "smolvlm": "smolvlm",
    "qwen2_5_vl_7b": "qwen2_5_vl",
    "qwen3_vl_8b": "qwen3_vl",
    "llava_onevision": "llava_onevision",
}


def section_names(choice: str) -> set[str]:
    """The keys of a backbone's config, also those that a user must set."""
    return set(map(str, OmegaConf.load(conf_dir() / "parts" / "vlm" / f"{choice}.yaml")))


@pytest.mark.parametrize("choice", choices("parts/vlm"))
def test_a_backbone_reads_each_state_by_itself(
    choice: str, world: World, queries: list[Query], tmp_path: Path
) -> None:
    chosen = [f"parts/vlm={choice}"]
    if "model" in section_names(choice):
        if choice not in TINY:
            pytest.skip(f"{choice} names a model of the hub, and no tiny one stands for it")
        chosen += [f"parts.vlm.model={FAMILIES[TINY[choice]](tmp_path)}", "parts.vlm.dtype=float32"]
    backbone: Backbone = build(world, *chosen)["vlm"]
    bare = [Query(query.text) for query in queries[:2]]
    asked = [*queries, *bare]
    statements = ["", "Earth orbits Sun", "", "Mars", "", "Mars"]
    hidden, mask = backbone(asked, statements)
    assert hidden.shape == (len(asked), mask.shape[1], backbone.dim)
    assert mask.dtype == torch.bool
    assert hidden[mask].isfinite().all()
    turned, turned_mask = backbone(asked[::-1], statements[::-1])
    for i, (states, real) in enumerate(zip(turned.flip(0), turned_mask.flip(0), strict=True)):
        tolerance = 0.1 if choice.startswith("minilm") else 1e-4  # it computes in bfloat16 where it can
        torch.testing.assert_close(states[real], hidden[i][mask[i]], atol=tolerance, rtol=0)
    assert backbone([], [])[0].shape[0] == 0


@pytest.mark.parametrize("choice", choices("parts/intent"))
def test_an_intent_has_a_row_a_path_and_a_text_a_state(
    choice: str, world: World, queries: list[Query]
) -> None:
    parts = build(world, f"parts/intent={choice}")
    states = states_of(world, parts, queries)
    found: Intents = parts["intent"](states)
    assert found.vectors.shape == (len(states.paths), world.text_encoder.dim)
    assert found.question.shape == (len(queries), world.text_encoder.dim)
    assert len(found.texts) == len(queries)
    torch.testing.assert_close(found.question, world.text_encoder.encode([q.text for q in queries]))


@pytest.mark.parametrize("choice", choices("parts/neighbourhood"))
def test_a_neighbourhood_is_one_vector_an_entity(choice: str, world: World) -> None:
    encoder = build(world, f"parts/neighbourhood={choice}")["neighbourhood"]
    everyone = torch.arange(world.graph.num_entities)
    vectors = encoder.rows(everyone).dense()
    assert vectors.shape == (len(everyone), encoder.dim)
    assert vectors.isfinite().all()
    some = torch.tensor([2, 0, 2])
    assert torch.equal(encoder.rows(some).dense(), vectors[some])
    torch.testing.assert_close(encoder.encode(some), vectors[some].float(), atol=5e-3, rtol=5e-3)
    encoder.refresh(0)
    assert torch.equal(encoder.rows(some).dense(), vectors[some])


@pytest.mark.parametrize("neighbourhood", choices("parts/neighbourhood"))
@pytest.mark.parametrize("choice", choices("parts/edge_scorer"))
def test_an_edge_scorer_gives_a_logit_an_edge_whatever_its_neighbours(
    choice: str, neighbourhood: str, world: World, queries: list[Query]
) -> None:
    parts = build(world, f"parts/edge_scorer={choice}", f"parts/neighbourhood={neighbourhood}")
    states = states_of(world, parts, queries)
    intents = parts["intent"](states)
    frontier = expand(world.graph, states.paths)
    texts: Rows = parts["texts"].stages[-1].edge_vectors(frontier.relation, frontier.tail)
    logits = parts["edge_scorer"](frontier, texts, intents)
    is_logits(logits, len(frontier))
    rows = torch.arange(0, len(frontier), 2)
    some = parts["edge_scorer"](frontier.select(rows), Rows(texts.vectors, texts.index[rows]), intents)
    torch.testing.assert_close(some, logits[rows], atol=1e-5, rtol=0)


@pytest.mark.parametrize("choice", choices("parts/chain_scorer"))
def test_a_chain_scorer_gives_a_logit_a_chain_whatever_its_neighbours(
    choice: str, world: World, queries: list[Query]
) -> None:
    parts = build(world, f"parts/chain_scorer={choice}")
    states = states_of(world, parts, queries)
    intents = parts["intent"](states)
    objective = world.text_encoder.encode([query.text for query in queries])
    chains = states.paths
    texts: Rows = parts["texts"].stages[-1].chain_vectors(chains)
    logits = parts["chain_scorer"](chains, texts, objective, intents)
    is_logits(logits, len(chains))
    rows = torch.arange(0, len(chains), 2)
    few = Intents(intents.vectors[rows], intents.question, intents.texts)
    index = Rows(texts.vectors, texts.index[rows])
    some = parts["chain_scorer"](chains.select(rows), index, objective, few)
    torch.testing.assert_close(some, logits[rows], atol=1e-5, rtol=0)


@pytest.mark.parametrize("choice", choices("parts/examiner"))
def test_an_examiner_picks_among_what_it_is_shown(choice: str, world: World, queries: list[Query]) -> None:
    parts = build(world, f"parts/examiner={choice}")
    chains = states_of(world, parts, queries).paths.records()
    shown = [chains[:2], chains[2:3], [], chains]
    picked = parts["examiner"].examine(queries, shown)
    assert all(set(mine) <= set(range(len(seen))) for mine, seen in zip(picked, shown, strict=True))


@pytest.mark.parametrize("choice", choices("parts/judge"))
def test_a_judge_weighs_the_kept_paths(choice: str, world: World, queries: list[Query]) -> None:
    parts = build(world, "parts/intent=learned", f"parts/judge={choice}")
    states = states_of(world, parts, queries)
    kept = [states.paths.select(torch.nonzero(states.paths.state == i)[:, 0]).records() for i in range(4)]
    found = parts["judge"].judge(queries, states.analyses, kept, 1)
    for evidence, paths in zip(found, kept, strict=True):
        assert 0 <= evidence.answerability <= 1
        assert evidence.paths == tuple(paths)
        assert evidence.hop == 1


@pytest.fixture(scope="module")
def systems(world: World) -> dict[str, System]:
    """Every system with the fixed and with the learned parts, built once."""
    made = {}
    for group in ("fixed", "learned"):
        parts = build(world, f"parts={group}")
        for name in choices("system"):
            config = load_config("eval", [f"system={name}", f"parts={group}", "parts/texts=exact"])
            made[f"{name}, {group}"] = make_system(config.system, world, parts)
    return made


def test_a_system_answers_each_query_once_in_order(
    systems: dict[str, System], world: World, queries: list[Query]
) -> None:
    assert len(systems) == 2 * len(choices("system"))
    for system in systems.values():
        assert isinstance(system, System)
        found = system.answer(queries)
        assert [one.answer for one in found] == [one.answer for one in system.answer(queries[::-1])][::-1]
        for query, one in zip(queries, found, strict=True):
            silent = one.provenance in ("abstained", "failed")
            assert silent == (one.answer == "")
            assert 0 <= one.confidence <= 1
            assert all(path.entities[0] == query.topic for path in one.paths)


def test_no_system_sees_more_than_words_pixels_and_a_granted_start(
    systems: dict[str, System], world: World
) -> None:
    assert world.source is not None
    questions = world.source.questions("train")[:3]
    stripped = [Question(id=f"x{i}", text=q.text, image=q.image) for i, q in enumerate(questions)]
    asked = [to_query(question, world.graph) for question in questions]
    bare = [to_query(question, world.graph) for question in stripped[::-1]]
    for name, system in systems.items():
        found, same = system.answer([*asked, Query("?")]), system.answer(bare)[::-1]
        assert len(found) == 4
        assert [replace(one, cost=Cost()) for one in found[:3]] == [
            replace(one, cost=Cost()) for one in same
        ], name
        assert all((one.provenance in ("abstained", "failed")) == (one.answer == "") for one in found), name
        assert not any(one.provenance == "failed" for one in found), name


@pytest.mark.parametrize("choice", choices("parts/selector"))
def test_a_selector_ends_every_question(choice: str, world: World, queries: list[Query]) -> None:
    parts = build(world, f"parts/selector={choice}")
    paths = states_of(world, parts, queries).paths.records()
    found = parts["selector"].select(queries[:2], [None, None], [paths, []])
    assert len(found) == 2
    assert found[0][0]
    assert found[1][2] == "abstained" or found[1][0]


@pytest.mark.parametrize("file", sorted((conf_dir() / "parts").glob("*.yaml")), ids=lambda file: file.stem)
def test_a_set_of_parts_names_only_choices_that_exist(file: Path) -> None:
    for entry in OmegaConf.load(file).defaults:
        ((group, choice),) = entry.items()
        assert choice in choices(f"parts/{group}")
