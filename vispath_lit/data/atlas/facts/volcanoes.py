"""The volcanoes of the last 12,000 years."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from openpyxl import load_workbook

from vispath_lit.data.atlas.countries import country_code
from vispath_lit.data.atlas.packages import package_file
from vispath_lit.data.atlas.sheet import FactSheet

WORKBOOK = "gvp/resources/gvp_202507041754.xlsx"
UNKNOWN = frozenset({"", "Unknown", "None", "No Data (checked)"})


@dataclass(frozen=True, slots=True)
class Volcano:
    """One row of the catalogue; it has two countries where it lies on a border, none at sea."""

    number: str
    name: str
    countries: tuple[str, ...]
    facts: dict[str, str]
    lat: float
    lon: float
    elevation: int

    @property
    def id(self) -> str:
        return f"volcano:{self.number}"


@cache
def volcanoes() -> list[Volcano]:
    """The catalogue in the order of its numbers."""
    sheet = load_workbook(package_file("gvp", WORKBOOK), read_only=True).worksheets[0]
    rows = iter(sheet.iter_rows(values_only=True))
    header = [str(name) for name in next(rows)]
    found = []
    for values in rows:
        row = dict(zip(header, values, strict=True))
        facts = {name: str(value or "").strip() for name, value in row.items()}
        found.append(
            Volcano(
                facts["volcano_number"],
                _in_reading_order(facts["volcano_name"]),
                _countries(facts["country"]),
                facts,
                float(facts["latitude"]),
                float(facts["longitude"]),
                int(float(facts["elevation_m"] or 0)),
            )
        )
    return sorted((v for v in found if not v.name.startswith("Unnamed")), key=lambda v: v.number)


def _in_reading_order(name: str) -> str:
    """Turns "Burney, Monte" into Monte Burney."""
    parts = name.split(", ")
    return f"{parts[1]} {parts[0]}" if len(parts) == 2 else name


def _countries(text: str) -> tuple[str, ...]:
    whole = country_code(text)
    parts = (whole,) if whole else tuple(country_code(part) for part in text.split("-"))
    return tuple(code for code in parts if code)


def add_volcanoes(sheet: FactSheet, codes: list[str]) -> None:
    """Volcanoes with region, kind, rock and setting; the highest of each country."""
    highest: dict[str, Volcano] = {}
    for volcano in volcanoes():
        if set(volcano.countries) & set(codes):
            _add_volcano(sheet, volcano)
        for code in volcano.countries:
            if code not in highest or volcano.elevation > highest[code].elevation:
                highest[code] = volcano
    for code in codes:
        if code in highest:
            sheet.add(f"country:{code}", "highest_volcano", highest[code].id)


def _add_volcano(sheet: FactSheet, volcano: Volcano) -> None:
    facts = volcano.facts
    id_ = sheet.entity("volcano", volcano.number, volcano.name, parent=facts["country"])
    if len(volcano.countries) == 1:
        sheet.add(id_, "in_country", f"country:{volcano.countries[0]}")
    region = sheet.concept("volcanic_region", facts["volcanic_region"])
    group = sheet.concept("volcanic_region_group", facts["volcanic_region_group"])
    sheet.add(id_, "volcanic_region", region)
    sheet.add(region, "volcanic_region_group", group)
    for column, relation, type_ in (
        ("primary_volcano_type", "volcano_type", "volcano_type"),
        ("volcano_landform", "volcano_landform", "landform"),
        ("dominant_rock_type", "rock_type", "rock"),
        ("tectonic_setting", "tectonic_setting", "tectonic_setting"),
    ):
        value = facts[column].split("(")[0].strip() if type_ == "volcano_type" else facts[column]
        if value not in UNKNOWN:
            sheet.add(id_, relation, sheet.concept(type_, value))
