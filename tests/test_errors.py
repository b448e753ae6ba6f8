from __future__ import annotations

import math
import re

import pytest

from vispath_lit.errors import ConfigError, at_least


@pytest.mark.parametrize("value", [0, -1, 0.999, -math.inf, math.inf, math.nan])
def test_a_setting_below_its_least_is_named(value: float) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"system.width is {value}; expected at least 1")):
        at_least(1, "system", depth=3, width=value)


def refused(low: int, value: float) -> bool:
    try:
        at_least(low, "system", width=value)
    except ConfigError:
        return True
    return False


@pytest.mark.parametrize(("low", "allowed"), [(0, [0.0, 0.5, 1, 10**30]), (1, [1, 10**30])])
def test_the_least_itself_is_allowed(low: int, allowed: list[float]) -> None:
    assert [value for value in (-1, 0.0, 0.5, 1, 10**30) if not refused(low, value)] == allowed


def test_the_first_of_several_that_is_refused_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^system\.pages is 0;"):
        at_least(1, "system", facts=10**30, pages=0, rounds=-1)
