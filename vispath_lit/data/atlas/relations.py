"""The relations of Atlas: what a triple of the graph can say, and of what it can be said.

Ids are stable; a question's gold path names them. A *functional* relation has at most one object for a
subject, by the way its facts are built. A relation that is not *askable* is true but trivial, or has a
handful of objects only: it may be walked through, but no question ends with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

SECTORS = ("north", "northeast", "east", "southeast", "south", "southwest", "west", "northwest")
"""The eight compass sectors of 45 degrees, clockwise; sector k is centred at a bearing of 45 k degrees."""

PLACES = ("city", "airport", "volcano", "subdivision", "us_state", "district", "county", "heritage_site")
AREAS = ("country", "subdivision", "us_state", "district", "county")


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation with the types of its subjects and objects."""

    id: str
    label: str
    inverse_label: str
    domain: tuple[str, ...]
    range: tuple[str, ...]
    functional: bool = True
    askable: bool = True


def _one(
    id: str,
    label: str,
    inverse: str,
    domain: str | tuple[str, ...],
    range_: str | tuple[str, ...],
    *,
    askable: bool = True,
) -> Relation:
    return Relation(id, label, inverse, _types(domain), _types(range_), True, askable)


def _many(
    id: str,
    label: str,
    inverse: str,
    domain: str | tuple[str, ...],
    range_: str | tuple[str, ...],
    *,
    askable: bool = True,
) -> Relation:
    return Relation(id, label, inverse, _types(domain), _types(range_), False, askable)


def _types(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def _border(sector: str) -> Relation:
    sided = ("country", "us_state", "county")
    return _many(
        f"borders_{sector}", f"borders to the {sector}", f"is the {sector}ern neighbour of", sided, sided
    )


BORDERS = tuple(_border(sector) for sector in SECTORS)
"""`(A, borders_east, B)`: B is a land neighbour of A, and lies to the east of it (see `geometry`)."""

COUNTRY_PLACES = (
    _one("capital", "capital", "is the capital of", ("country", "us_state"), "city"),
    _one("largest_city", "largest city", "is the largest city of", AREAS, "city"),
    _one("continent", "continent", "continent that holds", "country", "continent", askable=False),
    _one("subregion", "subregion", "subregion that holds", "country", "subregion"),
    _one("longest_border_with", "longest land border with", "is the longest border of", "country", "country"),
    _one(
        "shortest_border_with", "shortest land border with", "is the shortest border of", "country", "country"
    ),
    _one("territory_of", "territory of", "has the territory", "country", "country"),
    _one("independence_from", "gained independence from", "former ruler of", "country", "country"),
    _one("area_like", "has about the area of", "has about the area of the country", "country", "us_state"),
    _one("highest_point", "highest point", "is the highest point of", "country", "peak"),
    _one("lowest_point", "lowest point", "is the lowest point of", "country", "low_point"),
    _one("highest_volcano", "highest volcano", "is the highest volcano of", "country", "volcano"),
    _one("longest_river", "longest river", "is the longest river of", "country", "river"),
    _one("largest_lake", "largest lake", "is the largest lake of", "country", "lake"),
    _one("main_climate", "main climate", "is the main climate of", "country", "climate"),
    _many("climate_zone", "climate zone", "climate found in", "country", "climate"),
)

COUNTRY_STATE = (
    _one("government_type", "government type", "is the government type of", "country", "government_type"),
    _one("legal_system", "legal system", "is the legal system of", "country", "legal_system"),
    _one("legislature", "legislature", "is the legislature of", "country", "legislature"),
    _one("head_of_state", "head of state", "is the head of state of", "country", "person"),
    _one("head_of_government", "head of government", "is the head of government of", "country", "person"),
    _one("independence_year", "year of independence", "year that made independent", "country", "year"),
    _one("national_day", "national day", "is the national day of", "country", "date"),
    _one("anthem", "national anthem", "is the national anthem of", "country", "anthem"),
    _many("national_symbol", "national symbol", "is a national symbol of", "country", "symbol"),
    _many("national_colour", "national colour", "is a national colour of", "country", "colour"),
    _many("flag_colour", "flag colour", "is a flag colour of", "country", "colour"),
    _many("member_of", "member of", "has the member", "country", "organization"),
    _one("calling_code", "calling code", "is the calling code of", "country", "calling_code"),
    _one("internet_domain", "internet domain", "is the internet domain of", "country", "internet_domain"),
    _one(
        "first_weekday",
        "first day of the week",
        "day that begins the week in",
        "country",
        "weekday",
        askable=False,
    ),
)

COUNTRY_PEOPLE = (
    _one("currency", "currency", "is the currency of", "country", "currency"),
    _many("official_language", "official language", "is an official language of", "country", "language"),
    _many("spoken_language", "language spoken", "is spoken in", "country", "language"),
    _one("demonym", "name of its people", "people of", "country", "demonym"),
    _one("main_religion", "largest religion", "is the largest religion of", "country", "religion"),
    _many("religion", "religion", "is a religion in", "country", "religion"),
    _one(
        "main_ethnic_group",
        "largest ethnic group",
        "is the largest ethnic group of",
        "country",
        "ethnic_group",
    ),
)

COUNTRY_ECONOMY = (
    _one("main_export", "main export", "is the main export of", "country", "product"),
    _many("export_product", "exports", "is exported by", "country", "product"),
    _one("main_import", "main import", "is the main import of", "country", "product"),
    _many("import_product", "imports", "is imported by", "country", "product"),
    _one("main_export_partner", "main export partner", "is the main export partner of", "country", "country"),
    _many("export_partner", "export partner", "is an export partner of", "country", "country"),
    _one("main_import_partner", "main import partner", "is the main import partner of", "country", "country"),
    _many("import_partner", "import partner", "is an import partner of", "country", "country"),
    _one("main_crop", "main agricultural product", "is the main agricultural product of", "country", "crop"),
    _many("crop", "agricultural product", "is an agricultural product of", "country", "crop"),
    _many("industry", "industry", "is an industry of", "country", "industry"),
    _many("natural_resource", "natural resource", "is a natural resource of", "country", "resource"),
    _many("element_deposit", "deposits of the element", "has deposits in", "country", "element"),
)

PLACE_FACTS = (
    _one("in_country", "country", "place in this country", PLACES, "country"),
    _one(
        "in_subdivision",
        "first-level division",
        "place in this division",
        ("city", "airport", "district", "county"),
        ("subdivision", "us_state"),
    ),
    _one("in_district", "district", "place in this district", "city", ("district", "county")),
    _many("timezone", "time zone", "time zone of", ("country", "us_state", "city", "airport"), "timezone"),
    _one("utc_offset", "standard time offset", "offset of the time zone", "timezone", "utc_offset"),
    _one(
        "subdivision_kind",
        "kind of division",
        "kind of the division",
        "subdivision",
        "subdivision_kind",
        askable=False,
    ),
    _one(
        "subregion_of",
        "lies on the continent",
        "continent of the subregion",
        "subregion",
        "continent",
        askable=False,
    ),
    _one("serves_city", "city served", "city served by the airport", "airport", "city"),
    _one("state_region", "region of the United States", "region of the state", "us_state", "us_region"),
    _one("statehood_year", "year of statehood", "year that admitted the state", "us_state", "year"),
    _one("climate_group", "climate group", "climate group of", "climate", "climate_group", askable=False),
)

NATURE_FACTS = (
    _many("flows_through", "flows through", "has the river", "river", "country"),
    _one("river_source", "has its source in", "country of the source of", "river", "country"),
    _one("river_mouth", "has its mouth in", "country of the mouth of", "river", "country"),
    _many("lake_country", "lake in the country", "has the lake", "lake", "country"),
    _one("lake_water", "kind of water", "kind of water of the lake", "lake", "water_type", askable=False),
    _one("volcanic_region", "volcanic region", "volcanic region of", "volcano", "volcanic_region"),
    _one(
        "volcanic_region_group",
        "part of the volcanic regions",
        "holds the volcanic region",
        "volcanic_region",
        "volcanic_region_group",
    ),
    _one("volcano_type", "volcano type", "is the type of the volcano", "volcano", "volcano_type"),
    _one(
        "volcano_landform",
        "volcanic landform",
        "is the landform of the volcano",
        "volcano",
        "landform",
        askable=False,
    ),
    _one("rock_type", "dominant rock", "is the dominant rock of", "volcano", "rock"),
    _one("tectonic_setting", "tectonic setting", "is the tectonic setting of", "volcano", "tectonic_setting"),
)

CULTURE_FACTS = (
    _many("lyrics_by", "lyrics by", "wrote the lyrics of", "anthem", "person"),
    _many("music_by", "music by", "composed the music of", "anthem", "person"),
    _one("anthem_adopted", "year of adoption", "year that adopted the anthem", "anthem", "year"),
    _one("script", "script", "is the script of the language", "language", "script"),
    _one("principal_country", "principal country", "is the principal country of", "language", "country"),
    _one("script_language", "principal language", "is the principal language of", "script", "language"),
    _one(
        "writing_direction",
        "writing direction",
        "is the writing direction of",
        "script",
        "direction",
        askable=False,
    ),
    _one("issued_by", "issued by", "issues the currency", "currency", "country"),
    _one("in_month", "month", "month of the date", "date", "month", askable=False),
    _one("in_century", "century", "century of the year", "year", "century", askable=False),
)

CHEMISTRY_FACTS = (
    _one("element_group", "group of the periodic table", "is the group of", "element", "element_group"),
    _one("element_period", "period of the periodic table", "is the period of", "element", "element_period"),
    _one("element_series", "series of elements", "is the series of", "element", "element_series"),
    _one(
        "element_block",
        "block of the periodic table",
        "is the block of",
        "element",
        "element_block",
        askable=False,
    ),
    _one(
        "crystal_structure",
        "crystal structure",
        "is the crystal structure of",
        "element",
        "crystal_structure",
    ),
    _one(
        "goldschmidt_class",
        "geochemical class",
        "is the geochemical class of",
        "element",
        "goldschmidt_class",
        askable=False,
    ),
    _many("discovered_by", "discovered by", "discovered the element", "element", "person"),
    _one("discovered_in", "country of discovery", "is where was discovered", "element", "country"),
    _one("discovery_year", "year of discovery", "year that discovered", "element", "year"),
    _one(
        "named_after",
        "named after",
        "gave its name to",
        "element",
        ("country", "us_state", "city", "continent", "person", "celestial_body", "deity"),
    ),
    _one(
        "next_element",
        "next element in atomic number",
        "element before in atomic number",
        "element",
        "element",
    ),
    _many("contains_element", "contains the element", "is an element of the compound", "compound", "element"),
)

RELATIONS: tuple[Relation, ...] = (
    *COUNTRY_PLACES,
    *BORDERS,
    *COUNTRY_STATE,
    *COUNTRY_PEOPLE,
    *COUNTRY_ECONOMY,
    *PLACE_FACTS,
    *NATURE_FACTS,
    *CULTURE_FACTS,
    *CHEMISTRY_FACTS,
)


@cache
def relations_by_id() -> dict[str, Relation]:
    """The relations under their ids."""
    return {relation.id: relation for relation in RELATIONS}
