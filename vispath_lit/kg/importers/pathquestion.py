"""PathQuestion (Zhou, Huang and Zhu, 2018): the facts of `2H-kb.txt` and `3H-kb.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import Batch, Unit
from vispath_lit.kg.staging.lines import fields, reject_empty, reject_inverse_marks
from vispath_lit.kg.staging.streams import Block, base_name, walk
from vispath_lit.kg.staging.tally import Tally

FILES = {"2": ("2H-kb.txt",), "3": ("3H-kb.txt",), "both": ("2H-kb.txt", "3H-kb.txt")}


@dataclass(frozen=True)
class Format:
    """PathQuestion: facts of Freebase, and questions with gold paths (--questions)."""

    sources: tuple[Path, ...] = field(metadata={"help": "The published folder."})
    hops: str = field(default="both", metadata={"help": "2, 3, or both."})
    keep_unlinked: bool = True

    def __post_init__(self) -> None:
        if self.hops not in FILES:
            raise DataError(f"hops is {self.hops!r}; allowed are {', '.join(FILES)}")

    def units(self) -> Iterator[Unit]:
        for source in self.sources:
            for member in walk(source):
                if base_name(member.name) in FILES[self.hops]:
                    for block in member.blocks():
                        yield Unit(block.source, partial(_facts, block))

    def labels(self, ids: Any) -> Any:
        return pc.replace_substring(ids, "_", " ")


def _facts(block: Block, tally: Tally) -> Iterator[Batch]:
    data = block.data
    while b"\t\t" in data:  # Doubled tabs between the fields are one.
        data = data.replace(b"\t\t", b"\t")
    tidy = Block(b"\n".join(line.strip() for line in data.split(b"\n")) + b"\n", block.source, block.line)
    names = ("subject", "relation", "object")
    rows = reject_inverse_marks(reject_empty(fields(tidy, 3, tally), names, tally), 1, tally)
    columns = [pc.utf8_trim_whitespace(column) for column in rows.columns]
    yield Batch("triples", columns, rows.source, rows.lines)
