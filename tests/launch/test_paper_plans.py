"""The runs that each of the paper's tables needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from vispath_lit.errors import ConfigError
from vispath_lit.launch.config import load_config
from vispath_lit.launch.evaluate import configured
from vispath_lit.launch.paper_plans import plan

PLANETS = Path(__file__).parents[2] / "examples" / "planets"
DATA = [
    "data=custom",
    f"data.graph={PLANETS / 'graph'}",
    f"data.questions={PLANETS / 'questions.jsonl'}",
    "parts/texts=exact",
]


def test_plans() -> None:
    assert list(plan("main", DATA, [])) == ["vispath"]
    talking = plan("main", [*DATA, "chat=scripted"], [])
    assert {"vispath", "tog", "pog", "mindmap", "zero_shot", "omnisearch", "mmsearch_r1"} <= set(talking)
    assert "embedkgqa" not in talking
    given = {name: [one for one in overrides if "given" in one] for name, overrides in talking.items()}
    assert {name for name, found in given.items() if found == ["given=[start]"]} == {"tog", "pog", "mindmap"}
    assert all(found in (["given=[start]"], ["given=[nothing]"]) for found in given.values())
    assert plan("main", ["chat=scripted", "given=[]"], [])["tog"][-1] == "system=tog"
    assert next(iter(plan("ablation", [], []))) == "full system"
    beam = plan("beam", DATA, [])
    assert "m1 15" in beam
    assert beam["m3 5"] == [*DATA, "parts.search.m3=5"]
    assert len(beam) == 1 + 2 * 3 or len(beam) == 1 + 2 + 2 + 2
    assert list(plan("backbones", ["chat=openai"], ["chat.model=a,b", "chat.vision_model=c"])) == [
        "model a, vision_model c",
        "model b, vision_model c",
    ]
    for wrong in (["chat.model"], ["=a"], ["k="]):
        with pytest.raises(ConfigError, match="--vary"):
            plan("backbones", [], wrong)
    with pytest.raises(ConfigError, match="which models"):
        plan("backbones", [], [])


PROMPTED = {
    "analyzer": "PromptedAnalyzer",
    "grounder": "PromptedGrounder",
    "intent": "PromptedIntent",
    "examiner": "PromptedExaminer",
    "judge": "PromptedJudge",
    "selector": "PromptedSelector",
}
RIVALS = {"tog", "pog", "mindmap", "zero_shot", "omnisearch", "mmsearch_r1"}
OPENAI = ["chat=openai", "chat.model=m"]


def parts_in(overrides: list[str]) -> dict[str, str]:
    """The classes of the parts that a run of a plan is built from, by those the paper prompts."""
    config, _ = configured(load_config("eval", overrides), overrides)
    return {name: config.parts[name]._target_.rpartition(".")[2] for name in PROMPTED}


@pytest.mark.parametrize("kind", ["main", "cost", "grounding", "ablation", "beam"])
def test_with_a_language_model_vispath_is_the_papers(kind: str) -> None:
    label, overrides = next(
        (label, run) for label, run in plan(kind, OPENAI, []).items() if label not in RIVALS
    )
    assert parts_in(overrides) == PROMPTED, label
    config = load_config("eval", overrides)
    assert (config.parts.search.d_max, config.parts.search.inverse, config.parts.search.backtrack) == (
        3,
        False,
        True,
    )


def test_parts_that_the_user_chose_stay(tmp_path: Path) -> None:
    for own in ("parts=fixed", "experiment=text_only"):
        assert "PromptedSelector" not in parts_in(plan("main", [*OPENAI, own], [])["vispath"]).values()
    weights = f"ckpt_path={tmp_path / 'x.ckpt'}"
    assert plan("main", [*OPENAI, weights], [])["vispath"] == [
        *OPENAI,
        weights,
        "system=vispath",
        "given=[nothing]",
    ]
    assert plan("main", ["chat=none"], [])["vispath"] == ["chat=none", "system=vispath"]
    narrow = plan("main", [*OPENAI, "parts.search.m3=1", "parts/intent=fixed"], [])["vispath"]
    assert parts_in(narrow) == PROMPTED | {"intent": "QuestionIntent"}
    assert load_config("eval", narrow).parts.search.m3 == 1


def test_language_models_are_compared_where_something_asks_them() -> None:
    for held, varied in (("vision_model", "model"), ("model", "vision_model")):
        runs = plan("backbones", ["chat=openai", f"chat.{held}=X"], [f"chat.{varied}=A,B"])
        assert list(runs) == [f"{varied} A", f"{varied} B"]
        for overrides, name in zip(runs.values(), "AB", strict=True):
            config = load_config("eval", overrides)
            assert (config.chat[held], config.chat[varied]) == ("X", name)
            assert parts_in(overrides) == PROMPTED
    assert list(plan("backbones", ["chat.vision_model=v"], ["chat=openai,hf_local", "chat.model=A"]))
    assert len(plan("backbones", ["chat=openai", "system=tog"], ["chat.model=A,B"])) == 2
    with pytest.raises(ConfigError, match=r"nothing depends on chat\.model.*--set parts=prompted"):
        plan("backbones", ["chat=openai", "parts=fixed"], ["chat.model=A,B"])
    with pytest.raises(ConfigError, match="no back end is chosen: say --set chat=openai"):
        plan("backbones", [], ["chat.model=A,B"])
    blind = ["chat=openai", "chat.model=M", "chat.blind=true"]
    with pytest.raises(ConfigError, match=r"nothing depends on chat\.vision_model.*chat\.blind"):
        plan("backbones", blind, ["chat.vision_model=A,B"])
    assert len(plan("backbones", blind[::2], ["chat.model=A,B"])) == 2


def test_an_ablation_takes_away_only_what_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(plan("ablation", OPENAI, [])) == 5
    assert capsys.readouterr().err == ""
    assert "without visual intent" not in plan("ablation", [], [])
    assert "without visual intent: left out, as the full system has none" in capsys.readouterr().err
    learned = plan("ablation", ["parts=learned"], [])  # words alone, and no validation
    assert list(learned) == ["full system", "without chain pruning", "without evidence checking"]
    seeing = plan("ablation", ["parts=learned", "parts.intent.image_tokens=4"], [])
    assert "without visual intent" in seeing
