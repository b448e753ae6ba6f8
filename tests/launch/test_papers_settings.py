"""`parts=prompted experiment=paper` is the paper to the letter, as DESIGN section 2 has it."""

from __future__ import annotations

import pytest

from vispath_lit.launch.config import load_config, plain
from vispath_lit.launch.parts import PARTS, section
from vispath_lit.search.settings import SearchSettings

PAPER = ["run_dir=here", "chat=openai", "chat.model=m", "parts=prompted", "experiment=paper"]
PROMPTED = ("analyzer", "grounder", "intent", "examiner", "judge", "selector")
FIXED = ("texts", "edge_scorer", "chain_scorer")


def test_the_search_has_the_papers_numbers_and_nothing_beyond_the_paper() -> None:
    search = section(load_config("eval", PAPER).parts.search)
    assert search.pop("_target_").endswith(".SearchSettings")
    assert SearchSettings(**search) == SearchSettings(
        m1=30,
        m2=30,
        m3=3,
        d_max=3,
        inverse=False,
        relation_cap=None,
        backtrack=True,
        hub_cap=None,
        delta=0.05,
        validation=True,
        chain_pruning=True,
        evidence_checking=True,
        depth_floor=True,
        distinct_relations=False,
        trace="full",
    )


@pytest.mark.parametrize("order", [PAPER, [*PAPER[:-2], *PAPER[:-3:-1]]], ids=["parts first", "paper first"])
def test_every_step_of_a_language_model_is_prompted_and_none_is_learned(order: list[str]) -> None:
    config = load_config("eval", order)
    parts = plain(config)["parts"]
    targets = {name: parts[name]["_target_"] for name in PARTS}
    assert [name for name in PARTS if ".prompted.Prompted" in targets[name]] == list(PROMPTED)
    assert [name for name in PARTS if "learned" in targets[name].lower()] == []
    for name in FIXED:
        assert ".fixed." in targets[name] or ".exact." in targets[name], targets[name]
    assert targets["vlm"].endswith(".NoBackbone")
    assert config.ckpt_path is None
    assert config.system._target_.endswith(".vispath.VisPath")
    assert parts["grounder"] | {"retrieve": 20, "keep": 5} == parts["grounder"]
    assert parts["selector"]["verify"] == 3
