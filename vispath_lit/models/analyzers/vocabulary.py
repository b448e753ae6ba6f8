"""The function words of English questions, and how they are cut into words.

No word here belongs to a data set's relations: only determiners, prepositions, auxiliaries, question words
and the words with which English points at a picture.
"""

from __future__ import annotations

import re

EXPRESSION = "@"
QUESTION_WORDS = frozenset({"what", "which", "who", "whom", "whose", "where", "when", "how", "why"})
COPULAS = frozenset({"is", "are", "was", "were", "'s", "’s", "be"})
AUXILIARIES = COPULAS | {"do", "does", "did", "has", "have", "had", "can", "will"}
DETERMINERS = frozenset({"the", "a", "an", "this", "that", "these", "those", "its", "their", "his", "her"})
POSSESSIVES = frozenset({"'s", "’s"})
PREPOSITIONS = frozenset(
    {"of", "in", "on", "at", "by", "to", "from", "for", "with", "into", "through", "near", "under", "over"}
)
OPENERS = frozenset({",", ":", ";", ".", "?", "!", "and"})
FUNCTION_WORDS = """
as or could would shall may it they he she you i we me us them there here please tell name give say find if
then than so such also both each any some all being been am take consider think most
out after before without against between around above below inside outside than during since until upon ( )
"""
# "across the border of", "at the foot of", "with the longest coast on": one preposition in three words.
PLACING = frozenset(
    {"across", "along", "among", "at", "behind", "beyond", "on", "over", "with", "within", "by"}
)
STOP = (
    DETERMINERS
    | AUXILIARIES
    | QUESTION_WORDS
    | PREPOSITIONS
    | OPENERS
    | PLACING
    | set(FUNCTION_WORDS.split())
)
LINKS = frozenset({"of", "with", "in", "on", "from", "between", "to"})
COMPASS = re.compile(r"(?:north|south)?(?:east|west|ern)?|north|south")
# "name of X" is X; a "kind of X" is one noun phrase; "place of birth" is one notion.
TRANSPARENT = re.compile(r"\bthe (?:full |official )?names? of ")
PARTITIVES = frozenset(
    {
        "kind",
        "type",
        "sort",
        "number",
        "amount",
        "part",
        "piece",
        "body",
        "unit",
        "form",
        "group",
        "year",
        "date",
        "day",
        "time",
        "place",
        "cause",
        "head",
    }
)
COMPLEMENTS = frozenset(
    {"birth", "death", "origin", "residence", "state", "government", "education", "study", "work"}
)

# How English points at a picture, and what it points with.
PICTURE = (
    "image|picture|photo|photograph|drawing|illustration|figure|map|sketch|diagram|graphic|view|screenshot|icon|"
    "painting|outline|chart|table|poster|scene|frame|arrow|dot|cross|marker|circle|box|strip|cell|highlight|"
    "inset|triangle|square|star|spot|pin|sample"
)
MARKED = (
    "shown|pictured|depicted|displayed|illustrated|photographed|portrayed|drawn|sketched|outlined|rendered|"
    "presented|featured|visible|seen|marked|shaded|highlighted|coloured|colored|circled|labelled|labeled|"
    "picked out|pointed at|pointed out|singled out|indicated"
)
SHOWING = (
    rf"{MARKED}|shows?|depicts?|displays?|marks?|appears?|here|above|below|you see|you can see|this|these"
)


def words(text: str) -> list[str]:
    """Lower-case words, possessive marks and stops of a text, "@" kept."""
    return re.findall(rf"{EXPRESSION}|'s\b|’s\b|[\w\-]+(?:['’](?!s\b)\w+)?|[.,:;?!()]", text.lower())
