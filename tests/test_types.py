from __future__ import annotations

import pkgutil
from importlib import import_module

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
    state = torch.arange(len(paths))
    assert Paths.of(paths, state).state is state


def test_every_type_is_handed_on() -> None:
    files = [import_module(f"{types.__name__}.{file.name}") for file in pkgutil.iter_modules(types.__path__)]
    told = {name: one for file in files for name, one in vars(file).items() if own(one, file.__name__)}
    assert len(told) > 15
    for name, one in told.items():
        assert name in types.__all__
        assert getattr(types, name) is one


def own(one: object, module: str) -> bool:
    return getattr(one, "__module__", "") == module
