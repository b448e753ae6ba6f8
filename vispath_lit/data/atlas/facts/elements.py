"""Chemical elements and compounds."""

from __future__ import annotations

import re
from itertools import pairwise

from vispath_lit.data.atlas.countries import country_code
from vispath_lit.data.atlas.facts.states import year
from vispath_lit.data.atlas.names import names, namesakes
from vispath_lit.data.atlas.packages import open_database, package_file
from vispath_lit.data.atlas.sheet import FactSheet

GROUP_NAMES = {
    1: "alkali metals", 2: "alkaline earth metals", 11: "coinage metals", 13: "boron group",
    14: "carbon group", 15: "pnictogens", 16: "chalcogens", 17: "halogens", 18: "noble gases",
}  # fmt: skip
CRYSTALS = {
    "HEX": "hexagonal", "BCC": "body-centred cubic", "FCC": "face-centred cubic", "TET": "tetragonal",
    "DIA": "diamond cubic", "CUB": "cubic", "MCL": "monoclinic", "ORC": "orthorhombic", "RHL": "rhombohedral",
    "SC": "simple cubic",
}  # fmt: skip
COUNTRIES = {
    "England": "GB", "Scotland": "GB", "Great Britain": "GB", "USSR": "RU", "Russia": "RU",
    "United States": "US",
}  # fmt: skip
SPECIAL = {
    "Pierre and Marie Curie": ["Pierre Curie", "Marie Curie"],
    "Fausto and Juan José de Elhuyar": ["Fausto de Elhuyar", "Juan José de Elhuyar"],
}
YEARS = {"Nd": 1885, "Pr": 1885, "Cl": 1774}
DISPUTED = frozenset({"Pt", "No", "Be", "Ar", "Te"})
"""Elements whose discovery the source dates, places or attributes in a way that others contradict."""


def add_elements(sheet: FactSheet) -> None:
    """The 118 elements: place in the periodic table, discovery, crystal."""
    with open_database("mendeleev", "mendeleev/elements.db") as database:
        rows = database.execute(
            "select e.*, s.name as series from elements e join series s on s.id = e.series_id "
            "order by atomic_number"
        ).fetchall()
    for row in rows:
        symbol = str(row["symbol"])
        aliases = [symbol, f"element {row['atomic_number']}"]
        id_ = sheet.entity("element", symbol, row["name"], aliases, description=str(row["description"] or ""))
        period = f"period {row['period']} of the periodic table"
        sheet.add(id_, "element_period", sheet.entity("element_period", str(row["period"]), period))
        if row["group_id"]:
            number = int(row["group_id"])
            name = GROUP_NAMES.get(number)
            label = f"group {number}" + (f" ({name})" if name else "")
            sheet.add(id_, "element_group", sheet.entity("element_group", str(number), label, [name or ""]))
        sheet.add(id_, "element_series", sheet.concept("element_series", str(row["series"]).lower()))
        sheet.add(id_, "element_block", sheet.concept("element_block", f"{row['block']}-block"))
        if row["lattice_structure"] in CRYSTALS:
            crystal = sheet.concept("crystal_structure", CRYSTALS[row["lattice_structure"]])
            sheet.add(id_, "crystal_structure", crystal)
        if row["goldschmidt_class"] and row["goldschmidt_class"] != "synthetic":
            kind = str(row["goldschmidt_class"]).replace("litophile", "lithophile")
            sheet.add(id_, "goldschmidt_class", sheet.concept("goldschmidt_class", kind))
        if symbol not in DISPUTED:
            _add_discovery(
                sheet, id_, symbol, row["discoverers"], row["discovery_location"], row["discovery_year"]
            )
    for row, following in pairwise(rows):
        sheet.add(f"element:{row['symbol']}", "next_element", f"element:{following['symbol']}")


def _add_discovery(
    sheet: FactSheet, id_: str, symbol: str, who: str | None, where: str | None, when: int | None
) -> None:
    if when:
        sheet.add(id_, "discovery_year", year(sheet, YEARS.get(symbol, int(when))))
    if where and "/" not in where:
        code = COUNTRIES.get(where) or country_code(where)
        if code:
            sheet.add(id_, "discovered_in", f"country:{code}")
    if not who or re.search(r"ancients|Laborator|Institute|Research|Argonne|RIKEN", who):
        return
    known = names("discoverers")
    for name in SPECIAL.get(who) or [name.strip() for name in re.split(r"[,;](?! Jr)", who)]:
        if name != "et al":
            sheet.add(id_, "discovered_by", sheet.concept("person", known.get(name, name)))


def add_namesakes(sheet: FactSheet) -> None:
    """What elements are named after, where that is an entity (a person or a god becomes one)."""
    for symbol, (type_, key) in namesakes().items():
        id_ = f"{type_}:{key}"
        if type_ in {"celestial_body", "deity", "person", "continent"}:
            id_ = sheet.concept(type_, key)
        if id_ in sheet.entities:
            sheet.add(f"element:{symbol}", "named_after", id_)
    for symbol in ("Y", "Tb", "Er", "Yb"):
        place = sheet.entity("city", "ytterby", "Ytterby", parent="Sweden")
        sheet.add(place, "in_country", "country:SE")
        sheet.add(f"element:{symbol}", "named_after", place)


COMPOUNDS = 1500
_FORMULA = re.compile(r"([A-Z][a-z]?)(\d*)")


def add_compounds(sheet: FactSheet) -> None:
    """Common compounds with a plain name, and the elements in them."""
    seen: set[str] = set()
    for file, limit in (("Inorganic db.tsv", 700), ("chemical identifiers pubchem small.tsv", COMPOUNDS)):
        path = package_file("chemicals", f"chemicals/Identifiers/{file}")
        lines = path.read_text(encoding="utf-8").splitlines()
        rows = sorted(
            (line.split("\t") for line in lines), key=lambda row: (int(row[0]) < 0, int(row[0]), row[1])
        )
        for row in rows:
            if len(seen) >= limit:
                break
            name, formula = row[8].strip(), row[2]
            elements = [symbol for symbol, _ in _FORMULA.findall(formula)]
            plain = re.fullmatch(r"[A-Za-z][a-z]+(?: [a-z]+){0,2}", name) and 4 < len(name) < 32
            known = all(f"element:{symbol}" in sheet.entities for symbol in elements)
            if not plain or len(elements) < 2 or not known or name.lower() in seen:
                continue
            seen.add(name.lower())
            id_ = sheet.entity("compound", row[1], name[0].upper() + name[1:], [formula])
            for symbol in elements:
                sheet.add(id_, "contains_element", f"element:{symbol}")
