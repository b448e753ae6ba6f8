"""What a stage keeps: shards of which only the wanted columns are read, and a state of its own version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import TEXTS, Batch, Unit
from vispath_lit.kg.staging.stage import STATE, Stage
from vispath_lit.kg.staging.tally import Tally


class Entities:
    """One unit of two entities; counts how often it is parsed."""

    keep_unlinked = True

    def __init__(self) -> None:
        self.parsed = 0

    def units(self) -> Iterator[Unit]:
        yield Unit("memory", self.parse)

    def parse(self, tally: Tally) -> Iterator[Batch]:
        self.parsed += 1
        ids, labels = (pa.array(texts, type=pa.large_string()) for texts in (["a", "b"], ["A", "B"]))
        aliases = pa.array([["x", "y"], []], type=TEXTS)
        yield Batch("entities", [ids, labels, aliases], "memory", np.array([1, 2]))

    def labels(self, ids: object) -> object:
        return ids


def filled(target: Path, importer: Entities) -> Stage:
    with Stage(target, "key", "fail") as stage:
        stage.fill(importer)
    return stage


def test_columns_come_in_the_order_that_was_asked_for(tmp_path: Path) -> None:
    (shard,) = filled(tmp_path / "store", Entities()).shards("entities")
    (aliases, ids), lines, source = shard.read("aliases", "id")
    assert (aliases.to_pylist(), ids.to_pylist()) == ([["x", "y"], []], ["a", "b"])
    assert (lines.tolist(), source) == ([1, 2], "memory")


def test_a_column_that_is_not_there_is_said(tmp_path: Path) -> None:
    (shard,) = filled(tmp_path / "store", Entities()).shards("entities")
    with pytest.raises(DataError, match=r"entities\.arrow: cannot be read .* import again"):
        shard.read("id", "colour")


@pytest.mark.parametrize(("older", "parsed"), [(False, 1), (True, 2)])
def test_a_stage_of_another_version_begins_anew(tmp_path: Path, older: bool, parsed: int) -> None:
    importer = Entities()
    state = filled(tmp_path / "store", importer).folder / STATE
    if older:  # Its units were cut otherwise, so that its counts say nothing.
        state.write_text(json.dumps(json.loads(state.read_text()) | {"format": 1}))
    stage = filled(tmp_path / "store", importer)
    assert importer.parsed == parsed
    assert len(list(stage.shards("entities"))) == 1
    assert stage.tally.read == {"entities": 2}


def test_a_long_name_leaves_room_for_the_stage(tmp_path: Path) -> None:
    importer = Entities()
    stages = [filled(tmp_path / ("s" * 249 + end), importer) for end in ("one", "one", "two")]
    assert importer.parsed == 2  # the second one takes up what the first one has parsed
    assert len({stage.folder for stage in stages}) == 2
