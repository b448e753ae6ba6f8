"""The kinds of reference image: what is drawn, and of what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of picture.

    Attributes:
        types: entity types that have such a picture.
        tells: what the picture shows.
    """

    id: str
    types: tuple[str, ...]
    tells: str


KINDS = (
    Kind("flag", ("country",), "the flag"),
    Kind("outline", ("country",), "the country's outline, filled"),
    Kind("state_outline", ("us_state",), "the state's outline, filled"),
    Kind("county_locator", ("county",), "the county highlighted in its state's outline"),
    Kind("city_locator", ("city",), "a dot where the city lies in its country's outline"),
    Kind("state_city_locator", ("city",), "a dot where the city lies in its state's outline"),
    Kind("airport_locator", ("airport",), "a cross where the airport lies in its country's outline"),
    Kind("volcano_locator", ("volcano",), "a triangle where the volcano lies in its country's outline"),
    Kind("language_name", ("language",), "the name of the language in its own writing"),
    Kind("script_sample", ("script",), "letters of the script"),
    Kind("currency_sign", ("currency",), "the sign of the currency"),
    Kind("element_cell", ("element",), "the element's place in an empty periodic table"),
)
