from __future__ import annotations

import math
import re

import pytest

from vispath_lit.errors import ConfigError, at_least


@pytest.mark.parametrize("value", [0, -1, 0.999, -math.inf, math.inf, math.nan])
def test_a_setting_below_its_least_is_named(value: float) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"system.width is {value}; expected at least 1")):
        at_least(1, "system", depth=3, width=value)


def test_the_least_itself_is_allowed() -> None:
    at_least(0, "system", epochs=0, penalty=0.0)
    at_least(1, "system", pages=1, facts=10**30)
