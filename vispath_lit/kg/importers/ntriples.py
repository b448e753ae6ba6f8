"""N-Triples (W3C), parsed by pyoxigraph, which goes on behind a malformed line.

IRIs, blank nodes and, unless left out, literals become entities. Labels, further names, descriptions and
types are taken from the usual predicates in the chosen language; they name an entity and are no edges. The
type stays an edge, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow as pa

from vispath_lit.errors import DataError
from vispath_lit.kg.staging.importer import Batch, TableName, Unit
from vispath_lit.kg.staging.streams import Block, walk
from vispath_lit.kg.staging.tally import Tally

BLOCK = 4 << 20  # Bytes of lines that are parsed at a time.
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
STRING = "http://www.w3.org/2001/XMLSchema#string"
TEXTS = {
    "http://www.w3.org/2000/01/rdf-schema#label": "label",
    "http://www.w3.org/2004/02/skos/core#prefLabel": "label",
    "http://schema.org/name": "label",
    "http://www.w3.org/2004/02/skos/core#altLabel": "alias",
    "http://schema.org/description": "description",
    "http://www.w3.org/2000/01/rdf-schema#comment": "description",
}
ENDINGS = (".nt", ".ntriples", ".txt")
Edge = tuple[str, str, str]


@dataclass(frozen=True)
class Format:
    """N-Triples (.nt, also compressed or archived): IRIs, blank nodes and literals as entities."""

    sources: tuple[Path, ...] = field(metadata={"help": "Files, folders or archives of N-Triples."})
    language: str = field(
        default="en",
        metadata={"help": "Of labels, names, descriptions; those without a language count, too."},
    )
    literals: bool = field(default=True, metadata={"help": "Keep literals of other predicates as entities."})
    keep_unlinked: bool = field(default=False, metadata={"help": "Keep entities that no triple mentions."})

    def units(self) -> Iterator[Unit]:
        _parser()  # Missing, it is missed at once.
        for file, source in enumerate(self.sources):
            for number, member in enumerate(walk(source)):
                if source.is_file() or member.name.endswith(ENDINGS):
                    scope = f"{file}.{number}"
                    for block in member.blocks(BLOCK):
                        yield Unit(block.source, partial(self._parse, block, scope))

    def labels(self, ids: Any) -> Any:
        """The end of an IRI in words, the value of a literal."""
        return pa.array([_label(id) for id in ids.to_pylist()], type=pa.large_string())

    def _parse(self, block: Block, scope: str, tally: Tally) -> Iterator[Batch]:
        edges: list[Edge] = []
        texts: list[Edge] = []
        lines: dict[TableName, list[int]] = {"triples": [], "attributes": []}
        statement = _parser().Triple
        for line, quad in _quads(block, tally):
            subject, relation, tail = quad.subject, quad.predicate.value, quad.object
            if isinstance(subject, statement) or isinstance(tail, statement):
                tally.skip(block.source, line, "statement about a statement (RDF 1.2)", str(quad)[:200])
                continue
            head = _term(subject, scope)
            name = TEXTS.get(relation) if hasattr(tail, "datatype") else None
            if name is not None:
                if tail.language in (None, self.language) and tail.value.strip():
                    texts.append((head, name, tail.value))
                    lines["attributes"].append(line)
                else:
                    tally.noted["texts in other languages, or empty, left out"] += 1
                continue
            if hasattr(tail, "datatype") and not self.literals:
                tally.noted["literals left out"] += 1
                continue
            edges.append((head, relation, _term(tail, scope)))
            lines["triples"].append(line)
            if relation == RDF_TYPE:
                texts.append((head, "type", _label(edges[-1][2])))
                lines["attributes"].append(line)
        yield _batch("triples", edges, block, lines)
        yield _batch("attributes", texts, block, lines)


def _batch(table: TableName, rows: list[Edge], block: Block, lines: dict[TableName, list[int]]) -> Batch:
    columns = [pa.array([row[i] for row in rows], type=pa.large_string()) for i in range(3)]
    return Batch(table, columns, block.source, np.array(lines[table], dtype=np.int64))


def _quads(block: Block, tally: Tally) -> Iterator[tuple[int, Any]]:
    """(line, triple) of each good line; a block is parsed at once, line by line where that fails."""
    parser = _parser()
    lines = block.data.split(b"\n")
    filled = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"#")]
    try:
        quads = list(parser.parse(block.data, format=parser.RdfFormat.N_TRIPLES))
    except (SyntaxError, ValueError):
        quads = []
    if len(quads) == len(filled):
        yield from ((block.line + i, quad) for i, quad in zip(filled, quads, strict=True))
        return
    for i in filled:
        try:
            found = list(parser.parse(lines[i] + b"\n", format=parser.RdfFormat.N_TRIPLES))
        except (SyntaxError, ValueError) as error:
            tally.skip(block.source, block.line + i, "no N-Triples statement", str(error)[:200])
            continue
        yield from ((block.line + i, quad) for quad in found)


def _term(term: Any, scope: str) -> str:
    """An id: the IRI, `_:scope-name` (names of blank nodes hold within a file), or the literal as written."""
    if hasattr(term, "datatype"):
        return str(term)
    value = str(term.value)
    return f"_:{scope}-{value}" if str(term).startswith("_:") else value


def _label(id: str) -> str:
    if id.startswith('"'):
        return _value(id) or id
    if id.startswith("_:"):
        return id
    end = id.rstrip("/#").replace("#", "/").rpartition("/")[2]
    return " ".join(unquote(end).replace("_", " ").split()) or id


def _value(literal: str) -> str:
    """The text of a literal in its written form."""
    parser = _parser()
    statement = f"<urn:a> <urn:b> {literal} .".encode()
    quad = next(iter(parser.parse(statement, format=parser.RdfFormat.N_TRIPLES)))
    return " ".join(str(quad.object.value).split())


def _parser() -> Any:
    try:
        import pyoxigraph
    except ImportError as error:
        raise DataError("N-Triples need the package pyoxigraph: pip install 'vispath-lit[rdf]'") from error
    return pyoxigraph
