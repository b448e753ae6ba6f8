"""Where the facts are collected before they are written: entities, triples, and their checks."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from vispath_lit.data.atlas.relations import relations_by_id


@dataclass(frozen=True, slots=True)
class Entity:
    """One node of the graph.

    Attributes:
        parent: what tells it from others of the same name and type ("Illinois" for one Springfield).
        weight: how well known it is (a population); the far best known of a name keeps it bare.
        flag_description: what a country's flag shows, kept apart from the description.
    """

    id: str
    label: str
    type: str
    aliases: tuple[str, ...] = ()
    description: str = ""
    parent: str = ""
    weight: float = 0.0
    flag_description: str = ""


class FactSheet:
    """Collects entities and triples; keeps the first entity of an id and merges aliases of later ones."""

    def __init__(self) -> None:
        self.entities: dict[str, Entity] = {}
        self.triples: dict[tuple[str, str, str], None] = {}
        self._objects: dict[tuple[str, str], str] = {}

    def entity(
        self,
        type_: str,
        key: str,
        label: str,
        aliases: Iterable[str] = (),
        *,
        description: str = "",
        parent: str = "",
        weight: float = 0.0,
        flag_description: str = "",
    ) -> str:
        """Adds an entity (or more aliases of a known one) and returns its id `type:key`."""
        id_ = f"{type_}:{key}"
        label = tidy(label)
        known = self.entities.get(id_)
        names = [tidy(alias) for alias in aliases]
        if known is not None:
            names = [*known.aliases, label, *names]
            label = known.label
        distinct = tuple(name for name in dict.fromkeys(names) if name and name != label)
        if known is not None:
            self.entities[id_] = replace(known, aliases=distinct)
        else:
            self.entities[id_] = Entity(
                id_, label, type_, distinct, tidy(description), tidy(parent), weight, tidy(flag_description)
            )
        return id_

    def concept(self, type_: str, label: str, aliases: Iterable[str] = ()) -> str:
        """An entity whose key is its own label."""
        return self.entity(type_, slug(label), label, aliases)

    def add(self, subject: str, relation: str, object_: str) -> None:
        """Adds a triple.

        A functional relation keeps its first object: sources are read best first.

        Raises:
            ValueError: an unknown entity or relation, or a type that the relation does not allow.
        """
        rule = relations_by_id().get(relation)
        for id_ in (subject, object_):
            if id_ not in self.entities:
                raise ValueError(f"triple ({subject}, {relation}, {object_}): entity {id_} was never added")
        if rule is None:
            raise ValueError(f"triple ({subject}, {relation}, {object_}): unknown relation")
        if self.entities[subject].type not in rule.domain or self.entities[object_].type not in rule.range:
            raise ValueError(
                f"triple ({subject}, {relation}, {object_}): allowed {rule.domain} to {rule.range}"
            )
        if rule.functional and self._objects.setdefault((subject, relation), object_) != object_:
            return
        if subject != object_:
            self.triples[subject, relation, object_] = None

    def finish(self) -> tuple[list[Entity], list[tuple[str, str, str]]]:
        """Sorted entities with distinct labels within their type, and sorted triples.

        An entity that no triple mentions is left out.
        """
        used = {id_ for subject, _, object_ in self.triples for id_ in (subject, object_)}
        kept = [self.entities[id_] for id_ in sorted(used)]
        return _distinct_labels(kept), sorted(self.triples)


KNOWN_BETTER = 5.0
"""The best known bearer of a name keeps it bare if its weight is this many times the next one's."""


def _distinct_labels(entities: list[Entity]) -> list[Entity]:
    groups: dict[tuple[str, str], list[Entity]] = defaultdict(list)
    for entity in entities:
        groups[entity.type, entity.label].append(entity)
    changed: dict[str, Entity] = {}
    for group in groups.values():
        if len(group) > 1:
            changed |= _relabelled(group)
    return [changed.get(entity.id, entity) for entity in entities]


def _relabelled(group: list[Entity]) -> dict[str, Entity]:
    """New labels for namesakes: "name, parent", and a number where even that is not distinct."""
    ranked = sorted(group, key=lambda entity: (-entity.weight, entity.id))
    bare = ranked[0].weight >= KNOWN_BETTER * max(ranked[1].weight, 1.0)
    taken = {ranked[0].label} if bare else set()
    found = {}
    for entity in ranked[1:] if bare else ranked:
        base = f"{entity.label}, {entity.parent}" if entity.parent else entity.label
        label, number = base, 2
        while label in taken:
            label, number = f"{base} ({number})", number + 1
        taken.add(label)
        if label != entity.label:
            found[entity.id] = replace(entity, label=label, aliases=(entity.label, *entity.aliases))
    return found


def tidy(text: str) -> str:
    """One line in composed Unicode, without control characters and runs of blanks."""
    text = unicodedata.normalize("NFC", text)
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def slug(label: str) -> str:
    """A key made of a label: "Süd-Tirol (IT)" gives "süd-tirol-it"."""
    key = re.sub(r"[^\w]+", "-", tidy(label).casefold()).strip("-")
    if not key:
        raise ValueError(f"label {label!r} gives no key")
    return key
