"""Parts are built once, in order, from what their parameters name; what does not fit is said."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from omegaconf import OmegaConf

from vispath_lit.errors import ConfigError
from vispath_lit.launch.parts import PARTS, make, section
from vispath_lit.search.settings import SearchSettings

HERE = f"{__name__}."


@dataclass
class Wheel:
    graph: str
    width: int = 3


@dataclass
class Cart:
    """Asks for a wheel of its own and for one that the run has."""

    wheel: Wheel
    spare: str
    load: list[int] = field(default_factory=list)
    name: str = "cart"


def test_a_part_gets_its_config_and_what_it_asks_for_by_name() -> None:
    made = make({"_target_": f"{HERE}Wheel", "width": 7}, {"graph": "g", "encoder": "unasked"})
    assert made == Wheel("g", 7)


def test_a_config_value_wins_over_a_resource() -> None:
    assert make({"_target_": f"{HERE}Wheel", "graph": "mine"}, {"graph": "g"}).graph == "mine"


def test_a_nested_target_is_built_first_with_the_same_resources() -> None:
    config = {"_target_": f"{HERE}Cart", "wheel": {"_target_": f"{HERE}Wheel"}, "load": [1, 2]}
    assert make(config, {"graph": "g", "spare": "s"}) == Cart(Wheel("g"), "s", [1, 2])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"width": 1}, "needs a _target_"),
        ({"_target_": "vispath_lit.nowhere.Part"}, "cannot be imported"),
        ({"_target_": "vispath_lit.launch.parts.PARTS"}, "cannot be imported"),
        (
            {"_target_": f"{HERE}Wheel", "wdith": 1},
            r"no parameter \['wdith'\]; it takes \['graph'",
        ),
        ({"_target_": f"{HERE}Wheel"}, r"needs \['graph'\]"),
        ({"_target_": f"{HERE}Cart", "wheel": {"_target_": f"{HERE}Wheel"}}, r"Wheel needs \['graph'\]"),
    ],
)
def test_what_does_not_fit_is_said(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make(config, {})


def test_a_section_is_resolved_and_complete() -> None:
    config = OmegaConf.create({"data": {"graph": "???", "split": "${name}"}, "name": "test"})
    with pytest.raises(ConfigError, match=r"data\.graph is not set: say data\.graph=VALUE"):
        section(config.data)
    config.data.graph = "here"
    assert section(config.data) == {"graph": "here", "split": "test"}


def test_values_out_of_range_name_their_key() -> None:
    config = {"_target_": f"{SearchSettings.__module__}.SearchSettings", "m3": 31}
    with pytest.raises(ConfigError, match=r"search\.m3 is 31"):
        make(config, {})


def test_every_part_comes_after_those_it_may_ask_for() -> None:
    assert len(set(PARTS)) == len(PARTS)
    assert PARTS.index("analyzer") < PARTS.index("grounder")
    assert PARTS[-1] == "search"
