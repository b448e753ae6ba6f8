"""How countries are governed, and what stands for them: from the Factbook's section on government."""

from __future__ import annotations

import re
from collections.abc import Iterable

from vispath_lit.data.atlas.countries import country_code
from vispath_lit.data.atlas.factbook import (
    Profile,
    first_date,
    items,
    person,
    profiles,
    quoted_title,
    without_brackets,
)
from vispath_lit.data.atlas.facts.nations import territory_owner
from vispath_lit.data.atlas.flags import COLOURS
from vispath_lit.data.atlas.names import word_list
from vispath_lit.data.atlas.sheet import FactSheet, slug

GOVERNMENT_TYPES = (
    "federal parliamentary constitutional monarchy", "federal parliamentary democracy",
    "federal parliamentary republic", "federal presidential republic", "federal semi-presidential republic",
    "parliamentary constitutional monarchy", "constitutional monarchy", "absolute monarchy",
    "parliamentary democracy", "parliamentary republic", "semi-presidential republic",
    "presidential republic", "presidential democracy", "communist party-led state", "communist state",
    "theocratic republic", "military junta", "military regime", "federal republic",
    "transitional government",
)  # fmt: skip
LEGAL_SYSTEMS = (
    (r"^mixed .*civil.*common|^mixed .*common.*civil|^hybrid", "mixed system of civil and common law"),
    (r"^mixed .*(?:English )?common.*customary", "mixed system of common and customary law"),
    (r"^mixed .*civil.*customary", "mixed system of civil and customary law"),
    (r"^mixed .*civil.*(?:Islamic|sharia)", "mixed system of civil and Islamic law"),
    (r"^mixed .*common.*(?:Islamic|sharia)", "mixed system of common and Islamic law"),
    (r"^(?:Islamic|sharia)", "Islamic law"),
    (r"^(?:the )?(?:English )?common law|^common law", "common law"),
    (r"^(?:[A-Z][a-z]+ )?civil (?:law|legal)", "civil law"),
)
"""Patterns in the order in which they are tried."""
_GENERIC = re.compile(
    r"^(?:the )?(?:national |royal |state )?(?:anthem|hymn|song)$|^himno nacional$", re.IGNORECASE
)
_NO_AUTHOR = re.compile(r":| by |\d|\b(?:or|lyrics|music|committee|students|authors)\b")
_SINCE = re.compile(r"\(since [^)]*\)|\(born[^)]*\)")


def add_government(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Government type, legal system, legislature, and who leads state and government."""
    for code, profile in _profiles(codes):
        subject = f"country:{code}"
        kind = profile.text("Government", "Government type")
        type_ = next((name for name in GOVERNMENT_TYPES if kind.startswith(name)), None)
        if type_:
            sheet.add(subject, "government_type", sheet.concept("government_type", type_))
        law = profile.text("Government", "Legal system")
        system = next((name for pattern, name in LEGAL_SYSTEMS if re.search(pattern, law)), None)
        if system:
            sheet.add(subject, "legal_system", sheet.concept("legal_system", system))
        _add_legislature(sheet, subject, profile)
        for field, relation in (
            ("chief of state", "head_of_state"),
            ("head of government", "head_of_government"),
        ):
            name = leader(profile.text("Government", "Executive branch", field))
            if name:
                sheet.add(subject, relation, sheet.concept("person", name))


def _add_legislature(sheet: FactSheet, subject: str, profile: Profile) -> None:
    text = profile.text("Government", "Legislative branch", "legislature name")
    english = without_brackets(text.removesuffix(".")).removeprefix("UK ")
    if not english or len(english) > 70 or "suspended" in text or "none" in text.lower():
        return
    local = re.search(r"\(([^().]{4,60})\)$", text)
    country = sheet.entities[subject].label
    own_name = local[1].split(" or ")[0] if local else ""
    full = english if " of " in english or country in english else f"{english} of {country}"
    label = own_name if own_name[:1].isupper() else full
    names = [english, full]
    legislature = sheet.entity("legislature", subject.split(":")[1], label, names, parent=country)
    sheet.add(subject, "legislature", legislature)


def leader(text: str) -> str:
    """The one person of "President Rumen RADEV (since 22 January 2017)"; nothing where there are several."""
    first = re.split(r"; represented by|;", text)[0]
    if len(_SINCE.findall(first)) > 1 or not re.search(r"\(since ", text) or first.startswith("Vice"):
        return ""
    words = without_brackets(re.split(r" ?\(since ", first)[0]).split(",")[0].split()
    titles = word_list("titles")
    while words and words[0].lower() in titles:
        words = words[1:]
    if "of" in words:
        words = words[: words.index("of")]
    if not 1 <= len(words) <= 7 or not any(word.isupper() and len(word) > 1 for word in words):
        return ""
    return person(" ".join(words))


def add_symbols(sheet: FactSheet, codes: Iterable[str]) -> None:
    """National symbols and colours."""
    for code, profile in _profiles(codes):
        for item in items(profile.text("Government", "National symbol(s)")):
            if 2 < len(item) < 40 and not re.search(r" (on|with|over|in) ", item):
                sheet.add(f"country:{code}", "national_symbol", sheet.concept("symbol", item.lower()))
        for item in items(profile.text("Government", "National color(s)")):
            colour = {"gold": "yellow", "silver": "white", "light blue": "blue", "sky blue": "blue"}.get(
                item, item
            )
            if colour in COLOURS:
                sheet.add(f"country:{code}", "national_colour", sheet.concept("colour", colour))


def add_history(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Independence (year, and from whom) and the national day."""
    for code, profile in _profiles(codes):
        subject = f"country:{code}"
        text = profile.text("Government", "Independence")
        start = re.match(r"^(\d{1,2} [A-Z][a-z]+ \d{4}) \((?:declared )?from (?:the )?([^)]*)\)", text)
        if start:
            sheet.add(subject, "independence_year", year(sheet, int(start[1].split()[-1])))
            ruler = country_code(re.split(r";|,| under |-administered", start[2])[0].strip())
            if ruler and ruler != code:
                sheet.add(subject, "independence_from", f"country:{ruler}")
        holiday = profile.text("Government", "National holiday")
        date = first_date(holiday) if ";" not in holiday else None
        if date and not re.search(r"\d-\d", holiday.split("(")[0]):
            day = sheet.entity("date", f"{date[0]}-{date[1].lower()}", f"{date[0]} {date[1]}")
            sheet.add(day, "in_month", sheet.concept("month", date[1]))
            sheet.add(subject, "national_day", day)


def year(sheet: FactSheet, number: int) -> str:
    """A year, in its century."""
    id_ = sheet.entity("year", str(number), str(number))
    century = (number - 1) // 100 + 1
    ending = "th" if 10 < century % 100 < 14 else {1: "st", 2: "nd", 3: "rd"}.get(century % 10, "th")
    sheet.add(id_, "in_century", sheet.concept("century", f"{century}{ending} century"))
    return id_


def add_anthems(sheet: FactSheet, codes: Iterable[str]) -> None:
    """National anthems with their authors and the year of adoption.

    Of countries with a royal anthem the profile gives only that one; they get none.
    """
    for code, profile in _profiles(codes):
        text = profile.text("Government", "National anthem(s)", "title")
        title = quoted_title(text)
        history = profile.text("Government", "National anthem(s)", "history")
        if not title or text.count('"') > 2 or _is_royal(code, title, history):
            continue
        english = re.search(r"\(([^()]{3,60})\)", text)
        label = (english[1] if english else title).strip('“”"')
        country = sheet.entities[f"country:{code}"].label
        generic = _GENERIC.search(title) or _GENERIC.search(label)
        key = f"{code.lower()}-anthem" if generic else slug(title)
        anthem = sheet.entity("anthem", key, label, [title], parent=country)
        sheet.add(f"country:{code}", "anthem", anthem)
        _add_authors(sheet, anthem, profile.text("Government", "National anthem(s)", "lyrics/music"))
        adopted = re.match(r"^adopted (\d{4})", history)
        if adopted:
            sheet.add(anthem, "anthem_adopted", year(sheet, int(adopted[1])))


def _is_royal(code: str, title: str, history: str) -> bool:
    """Whether an anthem is sung for the monarch only, beside a national one that the profile leaves out."""
    if "GB" in (code, territory_owner(code)):
        return False
    return "royal anthem" in history or title == "God Save the King"


def _add_authors(sheet: FactSheet, anthem: str, text: str) -> None:
    """Reads "Words/Music", or one name for both; doubtful authors are left out."""
    if re.search(r"unknown|disput|traditional|none|attribut|based on", text, re.IGNORECASE) or not text:
        return
    sides = text.split("/")
    if len(sides) > 2:
        return
    for side, relations in zip(sides, (("lyrics_by",), ("music_by",)), strict=False):
        for name in re.split(r",| and ", without_brackets(side.split(";")[0])):
            if 1 < len(name.split()) < 7 and not _NO_AUTHOR.search(name):
                author = sheet.concept("person", person(name))
                for relation in relations if len(sides) == 2 else ("lyrics_by", "music_by"):
                    sheet.add(anthem, relation, author)


def add_memberships(sheet: FactSheet, codes: Iterable[str]) -> None:
    """Organizations of which a country is a full member: those listed without a remark."""
    for code, profile in _profiles(codes):
        text = profile.text("Government", "International organization participation")
        for part in re.split(r", (?![^(]*\))", text):
            name = part.strip()
            if name and "(" not in name and len(name) < 30:
                sheet.add(f"country:{code}", "member_of", sheet.concept("organization", name))


def _profiles(codes: Iterable[str]) -> list[tuple[str, Profile]]:
    return [(code, profiles()[code]) for code in codes if code in profiles()]
