"""Flags, written names, letters, signs, and places in the periodic table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.localedata import locale_identifiers

from vispath_lit.data.atlas.countries import countries
from vispath_lit.data.atlas.facts.languages import autonym
from vispath_lit.data.atlas.facts.nations import territory_owner
from vispath_lit.data.atlas.flags import flag_file
from vispath_lit.data.atlas.geometry import SIZE
from vispath_lit.data.atlas.packages import open_database
from vispath_lit.data.atlas.pictures import drawing
from vispath_lit.data.atlas.pictures.fonts import face_for, fitting_size
from vispath_lit.data.atlas.pictures.job import Job

TEXT_WIDTH = 0.76 * SIZE


def flags(ids: Collection[str]) -> Iterator[Job]:
    """Flags; of a land and its territory with the same flag, the land keeps it."""
    for code in countries():
        path = flag_file(code)
        if path is not None and f"country:{code}" in ids:
            rank = 1 if territory_owner(code) else 0
            picture = drawing.framed(path.read_text(encoding="utf-8"))
            yield Job(f"country:{code}", "flag", "", picture, rank=rank)


def language_names(ids: Collection[str]) -> Iterator[Job]:
    """What languages call themselves, where a font can write it and it is not the English name."""
    english = Locale("en").languages
    for code in sorted(id_.removeprefix("language:") for id_ in ids if id_.startswith("language:")):
        name = autonym(code)
        face = face_for(name) if name else None
        if face is not None and name.casefold() != str(english[code]).casefold():
            picture = drawing.words(name, face.family, fitting_size(name, face, TEXT_WIDTH))
            yield Job(f"language:{code}", "language_name", "", picture, (face.path,))


def script_samples(ids: Collection[str]) -> Iterator[Job]:
    """The nine letters that are most frequent in the script's principal language."""
    known = {identifier.split("_")[0] for identifier in locale_identifiers()}
    for code in sorted(Locale("en").scripts):
        tag = get_global("likely_subtags").get(f"und_{code}", "en" if code == "Latn" else "").split("_")[0]
        letters = frequent_letters(tag) if tag in known and f"script:{code}" in ids else []
        face = face_for("".join(letters))
        if face is not None and len(letters) == 9:
            picture = drawing.letter_grid(letters, face.family)
            yield Job(f"script:{code}", "script_sample", "", picture, (face.path,))


def frequent_letters(tag: str, count: int = 9) -> list[str]:
    """Letters by how often they occur in CLDR's names of countries in a language, then by code point."""
    tally: dict[str, int] = defaultdict(int)
    for name in Locale.parse(tag).territories.values():
        for character in str(name):
            if character.isalpha():
                tally[character.lower()] += 1
    return sorted(tally, key=lambda letter: (-tally[letter], letter))[:count]


def currency_signs(ids: Collection[str]) -> Iterator[Job]:
    """Signs of currencies: the English one, or else the one that the issuing country writes."""
    english = Locale("en").currency_symbols
    taken = {sign for code, sign in english.items() if sign != code}
    for code in sorted(id_.removeprefix("currency:") for id_ in ids if id_.startswith("currency:")):
        sign = str(english.get(code, code))
        if sign == code:
            sign = _home_sign(code)
            if sign in taken:
                continue
        face = face_for(sign)
        if sign and sign != code and face is not None:
            picture = drawing.words(sign, face.family, 1.2 * fitting_size(sign, face, TEXT_WIDTH / 1.2))
            yield Job(f"currency:{code}", "currency_sign", "", picture, (face.path,))


def _home_sign(code: str) -> str:
    """The sign in the main language of the country whose code the currency's begins with."""
    likely = get_global("likely_subtags").get(f"und_{code[:2]}", "").split("_")
    try:
        locale = Locale.parse(f"{likely[0]}_{code[:2]}") if len(likely) == 3 else Locale("en")
    except (UnknownLocaleError, ValueError):
        return ""
    return str(locale.currency_symbols.get(code, code))


def element_cells(ids: Collection[str]) -> Iterator[Job]:
    """The place of each element in the periodic table; lanthanides and actinides stand below."""
    with open_database("mendeleev", "mendeleev/elements.db") as database:
        rows = database.execute(
            "select symbol, atomic_number, period, group_id from elements order by 2"
        ).fetchall()
    cells = {
        str(row["symbol"]): _cell(int(row["atomic_number"]), int(row["period"]), row["group_id"])
        for row in rows
    }
    ground = drawing.svg(drawing.table(cells.values(), drawing.PALE_LAND))
    for symbol, cell in cells.items():
        mark = drawing.overlay(drawing.table([cell], drawing.MARK))
        yield Job(f"element:{symbol}", "element_cell", "", mark, ground=ground)


def _cell(number: int, period: int, group: int | None) -> tuple[int, int]:
    """Column and row, from 0."""
    for first, row in ((57, 8), (89, 9)):
        if first <= number < first + 14:
            return number - first + 2, row
    return (int(group) if group else 3) - 1, period - 1
