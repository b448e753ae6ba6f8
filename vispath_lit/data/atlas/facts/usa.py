"""The states and counties of the United States: names, borders, regions, capitals."""

from __future__ import annotations

import json

import us

from vispath_lit.data.atlas.facts.nations import current_zone, timezone
from vispath_lit.data.atlas.facts.places import state_capitals
from vispath_lit.data.atlas.facts.states import year
from vispath_lit.data.atlas.maps import county_borders, county_shapes, state_borders
from vispath_lit.data.atlas.packages import open_database
from vispath_lit.data.atlas.sheet import FactSheet


def add_states(sheet: FactSheet) -> None:
    """The 50 states and the District of Columbia, before the cities."""
    for state in [*us.states.STATES, us.states.DC]:
        id_ = sheet.entity(
            "us_state",
            f"US-{state.abbr}",
            str(state.name),
            [state.abbr, str(state.ap_abbr or ""), f"State of {state.name}"],
        )
        sheet.add(id_, "in_country", "country:US")
        if state.statehood_year:
            sheet.add(id_, "statehood_year", year(sheet, int(state.statehood_year)))
        for zone in state.time_zones:
            sheet.add(id_, "timezone", timezone(sheet, current_zone(zone)))
    for code, region in _regions():
        label = f"{region} (United States)"
        sheet.add(
            f"us_state:US-{code}", "state_region", sheet.entity("us_region", region.lower(), label, [region])
        )
    for code, borders in state_borders().items():
        for border in borders:
            sheet.add(f"us_state:US-{code}", f"borders_{border.sector}", f"us_state:US-{border.neighbour}")


def _regions() -> list[tuple[str, str]]:
    with open_database("bokeh-sampledata", "bokeh_sampledata/_data/geographic_boundaries.db") as database:
        rows = database.execute("select id, metadata from us_states order by id").fetchall()
    found = [(str(code), str(json.loads(metadata)["region"] or "")) for code, metadata in rows]
    return [(code, region) for code, region in found if region]


def add_state_capitals(sheet: FactSheet) -> None:
    """The capitals, after the cities."""
    for state, city in state_capitals().items():
        if city.id in sheet.entities:
            sheet.add(state, "capital", city.id)


def add_counties(sheet: FactSheet) -> None:
    """The counties of the states, with their neighbours in other states too."""
    for fips, county in county_shapes().items():
        name, state = county.name.rsplit(", ", 1)
        id_ = sheet.entity("county", fips, name, [name.removesuffix(" County")], parent=state)
        sheet.add(id_, "in_subdivision", f"us_state:US-{county.state}")
        sheet.add(id_, "in_country", "country:US")
    for fips, borders in county_borders().items():
        for border in borders:
            sheet.add(f"county:{fips}", f"borders_{border.sector}", f"county:{border.neighbour}")
