"""What a rival's prompts say is part of what its kept answers depend on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vispath_lit.launch.testing import wording
from vispath_lit.systems import mindmap
from vispath_lit.systems.mindmap import MindMap
from vispath_lit.systems.think_on_graph import ThinkOnGraph
from vispath_lit.systems.vispath import VisPath


def test_another_wording_is_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wording(MindMap)
    assert before == wording(MindMap)
    assert len({before, wording(ThinkOnGraph), wording(VisPath)}) == 3
    assert wording(VisPath) == "", "its prompts are those of the paper's steps, which the back end knows"
    for change in ({"instructions": "Answer `question`."}, {"max_tokens": 7}, {"temperature": 0.5}):
        with monkeypatch.context() as patch:
            patch.setattr(mindmap, "ANSWER", replace(mindmap.ANSWER, **change))
            assert wording(MindMap) not in ("", before)
    assert wording(MindMap) == before
