"""Rivers and lakes, with every country that the Factbook names for one of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from vispath_lit.data.atlas.countries import country_code, fold
from vispath_lit.data.atlas.factbook import without_brackets
from vispath_lit.data.atlas.facts.nations import country_rows
from vispath_lit.data.atlas.names import names
from vispath_lit.data.atlas.sheet import FactSheet

RED_RIVERS = {"US": "Red River of the South", "VN": "Red River", "CN": "Red River"}
_SHARED = re.compile(r"shared with (.*)$")
_AREA = re.compile(r"([\d,]{3,})(?:-[\d,]+)? sq km")


@dataclass(slots=True)
class _Water:
    """A river or lake with what all its countries say of it; a mark on which they differ is no fact."""

    label: str
    aliases: list[str] = field(default_factory=list)
    countries: dict[str, float] = field(default_factory=dict)
    marks: dict[str, set[str]] = field(default_factory=lambda: {"s": set(), "m": set()})
    kind: str = ""


def add_rivers(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Rivers of more than 1,000 km: where they flow, rise and end, and each country's longest."""
    wanted = set(codes)
    for river in _rivers().values():
        if not wanted & set(river.countries):
            continue
        id_ = sheet.concept("river", river.label, [*river.aliases, f"{river.label} River"])
        for code in sorted(river.countries):
            sheet.add(id_, "flows_through", f"country:{code}")
        for mark, relation in (("s", "river_source"), ("m", "river_mouth")):
            if len(river.marks[mark]) == 1:
                sheet.add(id_, relation, f"country:{min(river.marks[mark])}")
    _add_largest(sheet, "river", "longest_river", list(_rivers().values()), wanted)


def add_lakes(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Lakes with their countries and kind of water, and each country's largest."""
    wanted = set(codes)
    lakes = list(_lakes().values())
    for lake in lakes:
        if wanted & set(lake.countries):
            id_ = sheet.concept("lake", lake.label, lake.aliases)
            sheet.add(id_, "lake_water", sheet.concept("water_type", lake.kind))
            for code in sorted(lake.countries):
                sheet.add(id_, "lake_country", f"country:{code}")
    _add_largest(sheet, "lake", "largest_lake", lakes, wanted)


def _add_largest(sheet: FactSheet, type_: str, relation: str, waters: list[_Water], wanted: set[str]) -> None:
    """The water that measures most in each country; none where two measure the same."""
    for code in sorted(wanted):
        sizes = sorted(((w.countries[code], w.label) for w in waters if w.countries.get(code)), reverse=True)
        if sizes and (len(sizes) == 1 or sizes[0][0] > sizes[1][0]):
            sheet.add(f"country:{code}", relation, sheet.concept(type_, sizes[0][1]))


def _rivers() -> dict[str, _Water]:
    found: dict[str, _Water] = {}
    for row in country_rows("country_river"):
        code, text = str(row["alpha2"]), str(row["source_label"])
        if not text[0].isupper():
            continue
        name, aliases = _river_name(code, text)
        river = found.setdefault(fold(name), _Water(name))
        river.aliases += [alias for alias in aliases if alias != river.label]
        river.countries[code] = float(row["length_km"] or 0.0)
        own = text.split("(shared")[0]
        for mark, word in (("s", r"\bsource\b|\[s\]"), ("m", r"\bmouth\b|\[m\]")):
            if re.search(word, own):
                river.marks[mark].add(code)
        for other, mark in _sharers(text):
            river.countries.setdefault(other, 0.0)
            for letter in mark:
                river.marks[letter].add(other)
    return found


def _river_name(code: str, text: str) -> tuple[str, list[str]]:
    """The English name where one stands in brackets, and the local one."""
    own = re.sub(r"\(shared.*$|\(mouth.*$|\[[sm/]+\]", "", text)
    local = re.split(r" river\b| source\b| River\b", without_brackets(own))[0].strip()
    bracket = re.search(r"\(([^()]+?)(?: river)?\)", own)
    name = bracket[1].strip() if bracket else local
    name = {fold(key): value for key, value in names("rivers").items()}.get(fold(name), name)
    if name == "Red":
        name = RED_RIVERS[code]
    return name, [local] if local != name else []


def _sharers(text: str) -> list[tuple[str, str]]:
    """Countries of "(shared with Rwanda [s], Tanzania, and Egypt [m])" with their marks."""
    match = _SHARED.search(text)
    if match is None:
        return []
    found = []
    for part in re.split(r",| and (?!Herz)|\)", match[1]):
        marks = "".join(re.findall(r"\[([sm/]+)\]", part)).replace("/", "")
        code = country_code(re.sub(r"\[.*?\]|^\s*and ", "", part).strip(" )"))
        if code:
            found.append((code, marks))
    return found


def _lakes() -> dict[str, _Water]:
    found: dict[str, _Water] = {}
    for row in country_rows("country_lake"):
        code, text = str(row["alpha2"]), str(row["source_label"])
        name = _lake_name(code, text)
        if not name:
            continue
        lake = found.setdefault(" ".join(sorted(fold(name).split())), _Water(name.split("/")[0]))
        lake.aliases += name.split("/")[1:]
        lake.kind = (
            lake.kind or {"freshwater": "fresh water", "saltwater": "salt water"}[str(row["water_type"])]
        )
        area = _AREA.search(text)
        lake.countries[code] = float(area[1].replace(",", "") if area else row["area_km2"] or 0.0)
        for other, _ in _sharers(text.split(" - ")[0]):
            lake.countries.setdefault(other, 0.0)
    return found


def _lake_name(code: str, text: str) -> str:
    """The lake's name, or nothing where the text is a remark ("in recent years the lake is dry")."""
    name = re.split(r" – | - | \d", without_brackets(text).split("(")[0])[0].replace("*", "").strip()
    if not name or not name[0].isupper():
        return ""
    if name in names("lakes"):
        return names("lakes")[name]
    plain = code in {"US", "CA"} and not re.search(r"Lake|Sea", name)
    return f"Lake {name}" if plain else name
