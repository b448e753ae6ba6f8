"""Who lives in a country and what it trades: from the Factbook's sections on people and economy."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vispath_lit.data.atlas.countries import country_code
from vispath_lit.data.atlas.factbook import Profile, items, profiles, shares, without_brackets
from vispath_lit.data.atlas.names import names
from vispath_lit.data.atlas.sheet import FactSheet

NO_GROUP = re.compile(r"other|unspecified|none|no answer|undeclared|unknown|mixed and|foreign", re.IGNORECASE)
SPELLINGS = {"maize": "maize", "manioc": "cassava", "cassava": "cassava", "groundnuts": "peanuts"}


def add_peoples(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Names of the people, religions, the largest ethnic group."""
    for code, profile in _profiles(codes):
        subject = f"country:{code}"
        name = _plural(profile.text("People and Society", "Nationality", "noun"))
        if name and name != sheet.entities[subject].label:
            adjective = profile.text("People and Society", "Nationality", "adjective")
            sheet.add(subject, "demonym", sheet.concept("demonym", name, [adjective] if adjective else []))
        _add_religions(sheet, subject, profile.text("People and Society", "Religions"))
        largest = re.sub(
            r" (at least|more than|approximately|and related)$",
            "",
            _largest(shares(profile.text("People and Society", "Ethnic groups"))),
        )
        if largest[:1].isupper() and not NO_GROUP.search(largest) and len(largest) < 40:
            sheet.add(subject, "main_ethnic_group", sheet.concept("ethnic_group", largest))


def _plural(noun: str) -> str:
    """The plural in "Austrian(s)" and in "Gabonese (singular and plural)"; other forms are left out."""
    if re.fullmatch(r"[A-Z][\w' -]+\(s\)", noun):
        return noun.replace("(s)", "s")
    match = re.fullmatch(r"([A-Z][\w' -]+?) \(singular and plural\)", noun)
    return match[1] if match else ""


def _largest(pairs: list[tuple[str, float]]) -> str:
    """The name with the largest share; nothing where two share it."""
    ranked = sorted(pairs, key=lambda pair: -pair[1])
    clear = ranked and (len(ranked) == 1 or ranked[0][1] > ranked[1][1])
    return ranked[0][0] if clear else ""


def _add_religions(sheet: FactSheet, subject: str, text: str) -> None:
    """Religions of at least 1 %; the largest one only where no group without a name could be larger."""
    pairs = shares(text)
    for name, share in pairs:
        religion = _religion(name)
        if religion and share >= 1.0:
            sheet.add(subject, "religion", sheet.concept("religion", religion))
    religious = [pair for pair in pairs if not re.search(r"none|unspecified|unaffiliated", pair[0])]
    main = _religion(_largest(religious))
    if main:
        sheet.add(subject, "main_religion", sheet.concept("religion", main))


def _religion(name: str) -> str | None:
    return names("religions").get(name.lower().strip())


def add_trade(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Goods and partners of trade; the Factbook lists the five largest, largest first."""
    for code, profile in _profiles(codes):
        subject = f"country:{code}"
        for field, main, every in (
            ("Exports - commodities", "main_export", "export_product"),
            ("Imports - commodities", "main_import", "import_product"),
        ):
            _add_list(sheet, subject, profile.text("Economy", field), "product", main, every, dated=True)
        _add_list(
            sheet,
            subject,
            profile.text("Economy", "Agricultural products"),
            "crop",
            "main_crop",
            "crop",
            dated=True,
        )
        for field, main, every in (
            ("Exports - partners", "main_export_partner", "export_partner"),
            ("Imports - partners", "main_import_partner", "import_partner"),
        ):
            _add_partners(sheet, subject, shares(profile.text("Economy", field)), main, every)


def _add_list(
    sheet: FactSheet, subject: str, text: str, type_: str, main: str, every: str, *, dated: bool
) -> None:
    """A list that is ranked where it bears a year: "cars, garments (2023)"."""
    ranked = dated and re.search(r"\((?:19|20)\d\d\)\s*$", text)
    for rank, item in enumerate(items(text)):
        if 2 < len(item) < 40:
            object_ = sheet.concept(type_, SPELLINGS.get(item.lower(), item.lower()))
            sheet.add(subject, every, object_)
            if rank == 0 and ranked:
                sheet.add(subject, main, object_)


def _add_partners(
    sheet: FactSheet, subject: str, pairs: list[tuple[str, float]], main: str, every: str
) -> None:
    largest = _largest(pairs)
    for name, _ in pairs:
        code = country_code(name)
        if code and f"country:{code}" != subject:
            sheet.add(subject, every, f"country:{code}")
            if name == largest:
                sheet.add(subject, main, f"country:{code}")


def add_resources(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Natural resources and industries; deposits of one element point to the element."""
    minerals = names("minerals")
    for code, profile in _profiles(codes):
        subject = f"country:{code}"
        for item in items(profile.text("Geography", "Natural resources")):
            name = item.lower()
            if name in minerals:
                sheet.add(subject, "element_deposit", f"element:{minerals[name]}")
            elif 2 < len(name) < 30:
                sheet.add(subject, "natural_resource", sheet.concept("resource", name))
        for item in items(profile.text("Economy", "Industries")):
            if 2 < len(item) < 40:
                sheet.add(subject, "industry", sheet.concept("industry", item[0].lower() + item[1:]))


def add_heritage(sheet: FactSheet, codes: Iterable[str]) -> None:
    """World Heritage Sites that the Factbook selects."""
    for code, profile in _profiles(codes):
        text = profile.text("Government", "National heritage", "selected World Heritage Site locales")
        for part in re.split(r";", text):
            name = without_brackets(part).strip(" .")
            if 4 < len(name) < 90 and name[0].isupper():
                site = sheet.entity(
                    "heritage_site", f"{code}-{name.casefold()}", name, parent=_label(sheet, code)
                )
                sheet.add(site, "in_country", f"country:{code}")


def add_comparisons(sheet: FactSheet, codes: Iterable[str]) -> None:
    """The one state whose area a country's comes close to: "slightly smaller than Maine"."""
    states = {e.label: e.id for e in sheet.entities.values() if e.type == "us_state"}
    pattern = re.compile(
        r"^(?:about|almost|slightly|a little|approximately)?\s*(?:the same size as|the size of|larger than|"
        r"smaller than|less than the size of)(?: the state of)? ([A-Z][a-z]+(?: [A-Z][a-z]+)*?)(?: State)?$"
    )
    for code, profile in _profiles(codes):
        named = {
            match[1]
            for part in profile.text("Geography", "Area - comparative").split(";")
            if (match := pattern.match(part.strip())) and match[1] in states
        }
        if len(named) == 1:
            sheet.add(f"country:{code}", "area_like", states[named.pop()])


def _label(sheet: FactSheet, code: str) -> str:
    return sheet.entities[f"country:{code}"].label


def _profiles(codes: Iterable[str]) -> list[tuple[str, Profile]]:
    return [(code, profiles()[code]) for code in codes if code in profiles()]
