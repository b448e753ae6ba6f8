"""The one place where a question of the data becomes what a system may see of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from vispath_lit.errors import DataError
from vispath_lit.kg.store import KnowledgeGraph
from vispath_lit.types import Query, Question

# No question's picture needs more; a larger one is refused before its pixels are decoded.
MAX_PIXELS = 64_000_000


def open_image(path: Path) -> Image.Image:
    """The pixels of a picture as RGB, without its file name or metadata.

    Raises:
        DataError: a file that is missing, no picture, damaged or larger than `MAX_PIXELS`.
    """
    try:
        with Image.open(path) as file:
            if file.width * file.height > MAX_PIXELS:
                raise DataError(f"{path}: {file.width} x {file.height} pixels; at most {MAX_PIXELS} are read")
            pixels = file.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError, SyntaxError, ValueError) as error:
        raise DataError(
            f"{path}: not a readable picture ({error}); replace the file or set image to null"
        ) from error
    return Image.frombytes("RGB", pixels.size, pixels.tobytes())


def to_query(
    question: Question,
    graph: KnowledgeGraph,
    *,
    grant_start: bool,
    grant_depth: bool,
    load: Callable[[Path], Image.Image] = open_image,
) -> Query:
    """What a system may see: the words, the pixels, and start and depth only where a protocol grants them.

    Args:
        grant_start: hand over the gold start entity ("given start").
        grant_depth: hand over the gold number of hops ("gold depth given").
        load: reads a picture.

    Raises:
        DataError: a granted value that the question does not hold, or an unreadable picture.
        UnknownEntityError: a topic that the graph does not hold.
    """
    topic = depth = None
    if grant_start:
        if question.topic_entity is None:
            raise DataError(f"question {question.id}: no topic_entity, which the given-start protocol needs")
        topic = graph.entity_index(question.topic_entity)
    if grant_depth:
        if question.hops is None:
            raise DataError(f"question {question.id}: no hops, which the given-depth protocol needs")
        depth = question.hops
    image = None if question.image is None else load(question.image)
    return Query(text=question.text, image=image, topic=topic, depth=depth)
