"""Languages, scripts and currencies, from the Unicode CLDR that Babel carries, and who uses them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.localedata import locale_identifiers

from vispath_lit.data.atlas.countries import countries, json_list
from vispath_lit.data.atlas.sheet import FactSheet

OFFICIAL = frozenset({"official", "de_facto_official"})
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NO_COUNTRY_CURRENCY = frozenset({"EU", "XA", "XC", "XD", "XO", "XP"})
SCRIPT_LABELS = {
    "Hans": "Simplified Chinese script",
    "Hant": "Traditional Chinese script",
    "Rohg": "Hanifi Rohingya script",
    "Cans": "Canadian Aboriginal syllabics",
}
MERGED = {"cmn": "zh", "tl": "fil", "nb": "no", "iw": "he", "in": "id"}
"""Codes of the sources that CLDR speaks of under another one."""


@cache
def autonym(code: str) -> str:
    """What speakers call their language; empty where CLDR has no data for it."""
    try:
        return str(Locale(code).languages.get(code, ""))
    except (UnknownLocaleError, ValueError):
        return ""


def languages_with_data() -> list[str]:
    """Every language that CLDR has data for and an English name of, by code."""
    codes = {identifier.split("_")[0] for identifier in locale_identifiers()}
    return sorted(code for code in codes if code in _english().languages and autonym(code))


@cache
def _english() -> Locale:
    return Locale("en")


@cache
def _likely() -> dict[str, str]:
    """CLDR's likely subtags: `de` to `de_Latn_DE`."""
    return dict(get_global("likely_subtags"))


def language(sheet: FactSheet, code: str) -> str | None:
    """A language by its ISO 639 code, with script and principal country; None without a name in CLDR."""
    code = code.split("-")[0].split("_")[0]
    code = MERGED.get(code, code)
    name = _english().languages.get(code)
    if name is None:
        return None
    id_ = sheet.entity("language", code, str(name), [autonym(code), f"{name} language", code])
    parts = _likely().get(code, "").split("_")
    if len(parts) == 3:
        script_id = script(sheet, parts[1])
        if script_id:
            sheet.add(id_, "script", script_id)
        if parts[2] in countries():
            sheet.add(id_, "principal_country", f"country:{parts[2]}")
    return id_


def script(sheet: FactSheet, code: str) -> str | None:
    """A script by its ISO 15924 code."""
    name = _english().scripts.get(code)
    if name is None:
        return None
    label = SCRIPT_LABELS.get(code) or f"{name} script"
    return sheet.entity("script", code, label, [str(name), code])


def add_languages(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Official and spoken languages of countries."""
    territory_languages = get_global("territory_languages")
    for code in codes:
        subject = f"country:{code}"
        for tag, facts in sorted(territory_languages.get(code, {}).items()):
            if facts["official_status"] in OFFICIAL:
                _link(sheet, subject, "official_language", tag)
        row = countries()[code].row
        for tag in json_list(row["language_codes"]) if row is not None else []:
            _link(sheet, subject, "spoken_language", tag)


def add_all_languages(sheet: FactSheet) -> None:
    """All languages with an autonym, spoken in the chosen countries or not."""
    for tag in languages_with_data():
        language(sheet, tag)


def _link(sheet: FactSheet, subject: str, relation: str, tag: str) -> None:
    object_ = language(sheet, tag)
    if object_:
        sheet.add(subject, relation, object_)


def add_scripts(sheet: FactSheet) -> None:
    """For each script the language that CLDR expects where only the script is known, and its direction.

    Comes after the languages.
    """
    known = [id_.split(":")[1] for id_, entity in sheet.entities.items() if entity.type == "script"]
    for code in sorted(known):
        tag = _likely().get(f"und_{code}", "en_Latn_US" if code == "Latn" else "").split("_")[0]
        object_ = language(sheet, tag) if tag and tag != "und" else None
        if object_:
            sheet.add(f"script:{code}", "script_language", object_)
        direction = _direction(tag)
        if direction:
            sheet.add(f"script:{code}", "writing_direction", sheet.concept("direction", direction))


def _direction(tag: str) -> str:
    try:
        return {"ltr": "left to right", "rtl": "right to left"}[str(Locale(tag).text_direction)]
    except (UnknownLocaleError, ValueError):
        return ""


def add_currencies(sheet: FactSheet, codes: Iterable[str]) -> None:
    """The one tender that is legal in a country today; of several, the one that the country itself issues."""
    tenders = get_global("territory_currencies")
    for code in codes:
        today = [name for name, _, until, tender in tenders.get(code, ()) if until is None and tender]
        own = [name for name in today if name.startswith(code)]
        today = own if len(today) > 1 and len(own) == 1 else today
        if len(today) == 1:
            sheet.add(f"country:{code}", "currency", currency(sheet, today[0]))


def currency(sheet: FactSheet, code: str) -> str:
    """A currency by its ISO 4217 code, whose first two letters name the country that issues it."""
    name = str(_english().currencies.get(code, code))
    sign = str(_english().currency_symbols.get(code, ""))
    id_ = sheet.entity("currency", code, name, [code, sign if len(sign) == 1 else ""])
    if code[:2] in countries() and code[:2] not in NO_COUNTRY_CURRENCY:
        sheet.add(id_, "issued_by", f"country:{code[:2]}")
    return id_


def add_weekdays(sheet: FactSheet, codes: Iterable[str]) -> None:
    """The day that begins the week."""
    tags = {tag.split("_")[-1]: tag for tag in sorted(locale_identifiers())}
    for code in codes:
        if code in tags:
            day = WEEKDAYS[Locale.parse(tags[code]).first_week_day]
            sheet.add(f"country:{code}", "first_weekday", sheet.concept("weekday", day))
