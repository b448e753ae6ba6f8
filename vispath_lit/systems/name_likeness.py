"""How alike names are written, whatever graph or language they come from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from vispath_lit.kg.folding import fold


def tf_idf(name: str, others: Sequence[str]) -> list[float]:
    """Cosines of the TF-IDF vectors of a name and others, over three-letter pieces, blanks included.

    A piece weighs log((1 + n) / (1 + names that hold it)) + 1, as is common; n counts all names.
    """
    bags = [Counter(_pieces(text)) for text in (name, *others)]
    held = Counter(piece for bag in bags for piece in bag)
    weights = {piece: math.log((1 + len(bags)) / (1 + count)) + 1 for piece, count in held.items()}
    vectors = [{piece: count * weights[piece] for piece, count in bag.items()} for bag in bags]
    norms = [math.sqrt(sum(value * value for value in vector.values())) for vector in vectors]
    return [
        sum(value * vectors[0].get(piece, 0.0) for piece, value in vector.items()) / (norms[0] * norm)
        if norm and norms[0]
        else 0.0
        for vector, norm in zip(vectors[1:], norms[1:], strict=True)
    ]


def _pieces(text: str) -> list[str]:
    padded = f" {' '.join(fold(text).split())} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]
