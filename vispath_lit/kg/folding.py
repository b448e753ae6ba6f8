"""Folds names, so that "São Paulo", "SÃO  PAULO" and, one tier below, "Sao Paulo" find the same entity."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import compress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from vispath_lit.kg.lookup import SLICE, hash_column, hash_texts

# Accents of Latin, Greek and Cyrillic, and the vowel points of Hebrew and Arabic. Marks that spell another
# letter elsewhere (Japanese voicing, Indic vowels) stay.
_ACCENTS = re.compile("[\u0300-\u036f\u0591-\u05c7\u064b-\u0652\u0670]")


def fold(text: str) -> str:
    """Compatibility form, case folded, white space collapsed to single blanks."""
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return " ".join(folded.split())


def strip_accents(folded: str) -> str:
    """The second tier: a folded name without accents."""
    if folded.isascii():
        return folded
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", folded)))


@dataclass(frozen=True, slots=True, eq=False)
class NameHashes:
    """Hashes of names, each with its entity, in no order.

    Attributes:
        hashes, entities: `[n]` of all folded names.
        bare_hashes, bare_entities: `[m]` of those without accents that differ from the folded ones.
    """

    hashes: NDArray[np.uint64]
    entities: NDArray[np.int32]
    bare_hashes: NDArray[np.uint64]
    bare_entities: NDArray[np.int32]


def name_hashes(labels: Any, aliases: Any) -> NameHashes:
    """What the hash tables of names are made of; the texts are no longer needed then.

    Args:
        labels: N texts (Arrow large_string).
        aliases: N lists of texts (Arrow large_list).
    """
    count = np.asarray(pc.list_value_length(aliases).to_numpy(zero_copy_only=False), dtype=np.int64)
    own = np.arange(len(labels), dtype=np.int32)
    texts = pa.chunked_array([labels, aliases.flatten()])
    entities = np.concatenate([own, np.repeat(own, count)])
    hashes, bare_hashes, differs = _hashes(texts)
    return NameHashes(hashes, entities, bare_hashes, entities[differs])


def _hashes(texts: Any) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64]]:
    """Hashes of folded names; of accentless ones, and which rows those are.

    Plain ASCII names, nearly all of a large graph, are folded by Arrow and only hashed one by one. A slice of
    rows at a time, as there may be tens of millions.
    """
    hashes = np.empty(len(texts), dtype=np.uint64)
    bare_hashes, accented = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.int64)]
    for start in range(0, len(texts), SLICE):
        part = _whole(texts.slice(start, SLICE))
        ascii_rows = np.asarray(pc.string_is_ascii(part).to_numpy(zero_copy_only=False), dtype=bool)
        found = hashes[start : start + SLICE]
        found[ascii_rows] = hash_column(_single_blanks(pc.ascii_lower(part.filter(pa.array(ascii_rows)))))
        rows = np.flatnonzero(~ascii_rows)
        folded = [fold(text) for text in part.take(pa.array(rows)).to_pylist()]
        bare = [strip_accents(text) for text in folded]
        differs = np.array([a != b for a, b in zip(folded, bare, strict=True)], dtype=bool)
        found[rows] = hash_texts(folded)
        bare_hashes.append(hash_texts(compress(bare, differs)))
        accented.append(start + rows[differs])
    return hashes, np.concatenate(bare_hashes), np.concatenate(accented)


def _single_blanks(texts: Any) -> Any:
    """Collapses white space as `" ".join(text.split())` does, in the few ASCII texts that need it."""
    # \x1c to \x1f count as white space for str.split; \s of this engine lacks \x0b too.
    space = "[\\s\\x0b\\x1c-\\x1f]"
    untidy = pc.match_substring_regex(texts, f"{space}{space}|[\\t-\\r\\x1c-\\x1f]|^{space}|{space}$")
    if not pc.any(untidy).as_py():
        return texts
    tidy = pc.ascii_trim(pc.replace_substring_regex(texts.filter(untidy), f"{space}+", " "), " ")
    return pc.replace_with_mask(_whole(texts), _whole(untidy), _whole(tidy))


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
