from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from vispath_lit import types
from vispath_lit.types import Path, Paths

SCORES = st.floats(-100, 100, width=32)


@st.composite
def records(draw: st.DrawFn) -> list[Path]:
    hops = draw(st.integers(0, 3))
    ids = st.integers(0, 2**40)
    path = st.builds(
        Path,
        st.lists(ids, min_size=hops + 1, max_size=hops + 1).map(tuple),
        st.lists(ids, min_size=hops, max_size=hops).map(tuple),
        SCORES,
    )
    return draw(st.lists(path, min_size=1, max_size=4))


@given(records())
def test_records_become_a_batch_and_records_again(paths: list[Path]) -> None:
    batch = Paths.of(paths)
    assert batch.records() == paths
    assert batch.length == len(paths[0].relations)
    assert batch.ends.tolist() == [path.end for path in paths]
    assert batch.state.tolist() == [0] * len(paths)
    own = torch.arange(len(paths))
    assert Paths.of(paths, own).state is own


def test_every_name_is_handed_on() -> None:
    made = {
        name for name, one in vars(types).items() if getattr(one, "__module__", "").startswith(types.__name__)
    }
    assert made <= set(types.__all__)
    assert all(hasattr(types, name) for name in types.__all__)
