from __future__ import annotations

import pytest
from torch import nn

from vispath_lit.errors import CheckpointError
from vispath_lit.launch.checkpoint import load_weights


def test_weights_over_the_facts_of_another_graph_are_told_as_such() -> None:
    def picture(facts: int) -> nn.Module:
        return nn.ModuleDict({"picture": nn.ModuleDict({"of_facts": nn.Linear(2, facts)})})

    state = {f"parts.{key}": value for key, value in picture(3).state_dict().items()}
    load_weights(picture(3), state, "parts.")
    with pytest.raises(CheckpointError, match=r"parts/neighbourhood=facts.*its own graph alone"):
        load_weights(picture(4), state, "parts.")
