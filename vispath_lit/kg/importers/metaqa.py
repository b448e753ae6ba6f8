"""MetaQA (Zhang et al., 2018): the facts of `kb.txt`, `subject|relation|object`, and types of entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vispath_lit.kg.staging.importer import Batch, Unit
from vispath_lit.kg.staging.lines import fields, reject_empty, reject_inverse_marks
from vispath_lit.kg.staging.streams import Block, base_name, walk
from vispath_lit.kg.staging.tally import Tally

KB = "kb.txt"
MOVIE = "movie"
# The type of a relation's object; every subject is a movie.
TYPES = {
    "directed_by": "director",
    "written_by": "writer",
    "starred_actors": "actor",
    "release_year": "year",
    "in_language": "language",
    "has_tags": "tags",
    "has_genre": "genre",
    "has_imdb_rating": "imdbrating",
    "has_imdb_votes": "imdbvotes",
}


@dataclass(frozen=True)
class Format:
    """MetaQA: films, the facts of kb.txt, and questions with gold paths (--questions)."""

    sources: tuple[Path, ...] = field(metadata={"help": "The published folder or an archive of it."})
    keep_unlinked: bool = True

    def units(self) -> Iterator[Unit]:
        for source in self.sources:
            for member in walk(source):
                if base_name(member.name) == KB:
                    for block in member.blocks():
                        yield Unit(block.source, partial(_facts, block))

    def labels(self, ids: Any) -> Any:
        """Names are labels; those of relations are written with blanks."""
        return pc.if_else(pc.is_in(ids, pa.array(list(TYPES))), pc.replace_substring(ids, "_", " "), ids)


def _facts(block: Block, tally: Tally) -> Iterator[Batch]:
    names = ("subject", "relation", "object")
    rows = reject_inverse_marks(reject_empty(fields(block, 3, tally, "|"), names, tally), 1, tally)
    subject, relation, tail = rows.columns
    yield Batch("triples", rows.columns, rows.source, rows.lines)
    types = pa.array(TYPES.values())
    of_tail = pc.fill_null(types.take(pc.index_in(relation, value_set=pa.array(list(TYPES)))), "")
    of_subject = pa.repeat(pa.scalar(MOVIE), len(subject))
    ids = pa.concat_arrays([subject, tail])
    values = pa.concat_arrays([of_subject, of_tail]).cast(pa.large_string())
    name = pa.repeat(pa.scalar("type", type=pa.large_string()), len(ids))
    yield Batch("attributes", [ids, name, values], rows.source, np.tile(rows.lines, 2))
