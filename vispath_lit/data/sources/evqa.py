"""Encyclopedic VQA: questions about species and landmarks, as the published csv files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from vispath_lit.data.regrounding import Mention, Raw
from vispath_lit.data.sources.grounded import GroundedSource
from vispath_lit.data.sources.records import Row, read_rows
from vispath_lit.types import Question

LIST = "&&"  # Between the items of a list answer.
OR = "|"  # Between alternatives, image ids, and the two pages of a two-hop question.


class EVQA(GroundedSource):
    """`data=evqa data.graph=GRAPH data.folder=FOLDER`.

    The topic is the page of the picture (the first one of a two-hop question), found by its address, its
    title or `data.links`. A list answer is right where its items and the predicted ones overlap by half
    (IoU); any other where it equals an alternative. BEM, which the paper falls back to, is a model that is
    not used here.
    """

    name = "evqa"

    def read(self, file: Path, split: str) -> Iterator[Raw]:
        for row in read_rows(file):
            yield self._raw(row, split)

    def _raw(self, row: Row, split: str) -> Raw:
        lists = [
            [item.strip() for item in one.split(LIST) if item.strip()]
            for one in row.texts("answer", OR) or row.fail("answer", "missing or empty")
        ]
        lists = [items for items in lists if items] or row.fail("answer", "found separators alone")
        kind = row.text("question_type")
        listed = kind == "multi_answer" or any(len(items) > 1 for items in lists)
        items = list(dict.fromkeys(lists[0] if listed else [items[0] for items in lists]))
        mentions = [Mention(names=(item,)) for item in items] if listed else [Mention(names=tuple(items))]
        images = row.texts("dataset_image_ids", OR)
        hops = 2 if kind == "2_hop" else None
        question = Question(
            id=f"evqa-{split}-{row.number}",
            text=row.needed("question"),
            image=self.picture(images[0] if images else "", split, row.text("dataset_name")),
            answers=tuple(items),
            hops=hops,
            split=split,
            tags=tuple(f"type:{kind}" for kind in [kind] if kind),
            meta={
                "scoring": {"kind": "list", "lists": lists} if listed else {"kind": "exact"},
                "wikipedia_url": row.text("wikipedia_url"),
            },
        )
        return Raw(question, _page(row), tuple(mentions))


def _page(row: Row) -> Mention | None:
    """The first page: its address, the last part of it, and its title."""
    addresses, titles = row.texts("wikipedia_url", OR), row.texts("wikipedia_title", OR)
    address = addresses[0] if addresses else ""
    try:
        last = unquote(urlsplit(address).path.rsplit("/", 1)[-1]) if address.isprintable() else ""
    except ValueError as error:
        row.fail("wikipedia_url", f"found {address[:80]!r}, no address of a page ({error})")
    names = [*titles[:1], *([last.replace("_", " ")] if last else [])]
    ids = tuple(one for one in dict.fromkeys([address, last]) if one)
    return Mention(ids, tuple(dict.fromkeys(names))) if ids or names else None
