"""Builds the graph folder of Atlas: facts, pictures, cues and attributions.

Everything is sorted before it is written, so that the same packages give the same bytes.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vispath_lit.data.atlas.attributions import attributions
from vispath_lit.data.atlas.countries import countries
from vispath_lit.data.atlas.cues import write_cues
from vispath_lit.data.atlas.facts import (
    elements,
    languages,
    nations,
    peoples,
    places,
    states,
    usa,
    volcanoes,
    waters,
)
from vispath_lit.data.atlas.packages import require_packages
from vispath_lit.data.atlas.pictures.jobs import picture_jobs
from vispath_lit.data.atlas.pictures.render import Picture, render
from vispath_lit.data.atlas.relations import RELATIONS
from vispath_lit.data.atlas.sheet import Entity, FactSheet
from vispath_lit.errors import ConfigError
from vispath_lit.kg.tsv import escape, join_aliases, write_table
from vispath_lit.progress import track


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """What was written.

    Attributes:
        dropped: pictures left out because another entity's looks the same, by kind.
    """

    entities: int
    triples: int
    relations: int
    types: int
    images: int
    image_entities: int
    kinds: dict[str, int]
    dropped: dict[str, int]
    packages: dict[str, str]


def write_graph(
    out: Path, only: Iterable[str] | None = None, *, pictures: bool = True, workers: int | None = None
) -> GraphSummary:
    """Writes `out/graph`, `out/cues.json` and `out/ATTRIBUTIONS.md`.

    Args:
        out: made where missing; an earlier graph in it is replaced once the new one is complete.
        only: ISO codes of the countries to build for; None for the whole world.
        pictures: whether to draw reference images.
        workers: processes that draw; None for one a core. The number changes no byte.

    Raises:
        DataError: a package is missing or has another form.
        ConfigError: `only` names no country.
    """
    packages = require_packages()
    codes = _codes(only)
    sheet = collect_facts(codes, whole=only is None)
    entities, triples = sheet.finish()
    partial = out / ".graph.partial"
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "images").mkdir(parents=True)
    jobs = picture_jobs(entities) if pictures else []
    kept, dropped = render(jobs, partial / "images", workers=workers)
    _write_tables(partial, entities, triples, kept)
    shutil.rmtree(out / "graph", ignore_errors=True)
    partial.rename(out / "graph")
    write_cues(out / "cues.json")
    (out / "ATTRIBUTIONS.md").write_text(attributions(packages), encoding="utf-8")
    return _summary(entities, triples, kept, dropped, packages)


def collect_facts(codes: list[str], *, whole: bool) -> FactSheet:
    """All facts about the given countries; compounds and all languages only with the whole world."""
    sheet = FactSheet()
    nations.add_countries(sheet, None if whole else frozenset(codes))
    if "US" in codes:
        usa.add_states(sheet)
        usa.add_counties(sheet)
    places.add_divisions(sheet, codes)
    places.add_cities(sheet, codes)
    usa.add_state_capitals(sheet)
    places.add_airports(sheet, codes)
    elements.add_elements(sheet)
    steps = (
        *(nations.add_borders, nations.add_flag_colours, nations.add_codes, nations.add_climate),
        *(nations.add_heights, waters.add_rivers, waters.add_lakes),
        *(states.add_government, states.add_symbols, states.add_history, states.add_anthems),
        *(states.add_memberships, peoples.add_peoples, peoples.add_trade, peoples.add_resources),
        *(peoples.add_heritage, peoples.add_comparisons, volcanoes.add_volcanoes),
        *(languages.add_languages, languages.add_currencies, languages.add_weekdays),
    )
    for step in track(steps, "facts"):
        step(sheet, codes)
    elements.add_namesakes(sheet)
    if whole:
        languages.add_all_languages(sheet)
        elements.add_compounds(sheet)
    languages.add_scripts(sheet)
    return sheet


def _codes(only: Iterable[str] | None) -> list[str]:
    if only is None:
        return list(countries())
    codes = sorted(set(only))
    unknown = [code for code in codes if code not in countries()]
    if unknown or not codes:
        raise ConfigError(
            f"only={codes}: {unknown} are no ISO 3166 codes of countries in Atlas, such as AT or BR"
        )
    return codes


def _write_tables(
    folder: Path, entities: list[Entity], triples: list[tuple[str, str, str]], pictures: list[Picture]
) -> None:
    write_table(
        folder / "entities.tsv",
        ("id", "label", "aliases", "type", "description", "flag_description"),
        (
            (
                escape(entity.id),
                escape(entity.label),
                join_aliases(entity.aliases),
                entity.type,
                escape(entity.description),
                escape(entity.flag_description),
            )
            for entity in entities
        ),
    )
    used = {relation for _, relation, _ in triples}
    write_table(
        folder / "relations.tsv",
        ("id", "label", "inverse_label"),
        ((rule.id, rule.label, rule.inverse_label) for rule in RELATIONS if rule.id in used),
    )
    write_table(
        folder / "triples.tsv",
        ("subject", "relation", "object"),
        ((escape(subject), relation, escape(object_)) for subject, relation, object_ in triples),
    )
    write_table(
        folder / "images.tsv",
        ("entity", "path", "kind"),
        ((escape(picture.entity), f"images/{picture.file}", picture.kind) for picture in pictures),
    )


def _summary(
    entities: list[Entity],
    triples: list[tuple[str, str, str]],
    pictures: list[Picture],
    dropped: dict[str, int],
    packages: dict[str, str],
) -> GraphSummary:
    return GraphSummary(
        entities=len(entities),
        triples=len(triples),
        relations=len({relation for _, relation, _ in triples}),
        types=len({entity.type for entity in entities}),
        images=len(pictures),
        image_entities=len({picture.entity for picture in pictures}),
        kinds=dict(sorted(Counter(picture.kind for picture in pictures).items())),
        dropped=dropped,
        packages=packages,
    )
