"""Training starts at the fixed scorers: the whole untrained system searches as the fixed one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from torch import nn

from vispath_lit.data.queries import to_query
from vispath_lit.launch.config import load_config
from vispath_lit.launch.parts import make_parts, make_system, make_world
from vispath_lit.types import Prediction

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = ["data=custom", f"data.graph={PLANETS / 'graph'}", f"data.questions={PLANETS / 'questions.jsonl'}"]


def paths_of(prediction: Prediction) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The answer's paths, then those of each hop in the order of its ranking."""
    hops = [path for hop in prediction.trace for path in (*hop.chains, *hop.kept)]
    return [(path.entities, path.relations) for path in (*prediction.paths, *hops)]


def scores_of(prediction: Prediction) -> list[float]:
    hops = [path for hop in prediction.trace for path in (*hop.discovered, *hop.chains, *hop.kept)]
    return [path.score for path in (*prediction.paths, *hops)]


@pytest.mark.parametrize(
    ("search", "neighbourhood"),
    [("default", "none"), ("default", "gatv2"), ("fixed", "none"), ("paper", "none")],
)
def test_untrained_equals_fixed(search: str, neighbourhood: str, tmp_path: Path) -> None:
    chosen = [
        f"cache_dir={tmp_path}",
        "parts/texts=exact",
        "parts/texts@fixed.texts=exact",
        f"parts/search={search}",
        f"parts/neighbourhood={neighbourhood}",
        f"parts/search@fixed.search={search}",
    ]
    config = load_config("train", [*DATA, *chosen])
    world = make_world(config)
    learned = make_parts(config.parts, world)
    modules = [part.eval() for part in learned.values() if isinstance(part, nn.Module)]
    assert sum(weight.numel() for module in modules for weight in module.parameters()) > 10_000
    untrained = make_system(config.system, world, learned)
    fixed = make_system(config.system, world, make_parts(config.fixed, world))
    assert world.source is not None
    questions = [question for split in ("train", "test") for question in world.source.questions(split)]
    queries = [to_query(question, world.graph, grant_start=True) for question in questions]
    for mine, other in zip(untrained.answer(queries), fixed.answer(queries), strict=True):
        assert paths_of(mine) == paths_of(other)
        assert len(paths_of(other)) > len(other.paths)
        assert scores_of(mine) == pytest.approx(scores_of(other), abs=1e-5, rel=0)
        assert (mine.answer, mine.depth, mine.provenance) == (other.answer, other.depth, other.provenance)
